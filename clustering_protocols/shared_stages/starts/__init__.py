"""How parties of split rows agree on a start: V(0), in scaled units.

No start holds a row.

| round | task → contribution | envelopes |
|---|---|---|
| 1, `careful` | `propose` → `proposed` | `candidates` to the leader |
| 2 | `settle` → `settled` | the leader's to all: `start-centroids`, or `lane-starts` |
| 3 | `confirm` → `confirmed` | |

Starts that race come as `lane-starts`. Once all have confirmed, all have the start,
anyone who is asked for the first update.

Parameters of a protocol that starts so have ``n_clusters``, ``init`` and ``start``,
``initial_centroids``, ``n_init`` and ``scaling``.
"""

from __future__ import annotations

from typing import Any, Final

from clustering_protocols.contract import Exchange, Stage, roles_of

from . import messages

FROM_PARTIES: Final = ("careful", "random_party")
"""Starts of split rows that come from rows of parties."""

_role = roles_of(__name__)


def stage(params: Any) -> Stage:
    """Return the stage of a start that comes from rows of parties."""
    settled = messages.LaneStarts if params.n_init > 1 else messages.StartCentroids
    propose = Exchange(messages.Propose, messages.StartProposal)
    return Stage(
        name="start",
        analyst=_role("roles:StartAnalyst"),
        party=_role("roles:StartParty"),
        exchanges=(
            *([propose] if params.start == "careful" else []),
            Exchange(messages.Settle, messages.StartSettled),
            Exchange(messages.KeepStart, messages.StartKept),
        ),
        envelopes=(messages.Candidates, settled),
        each_run=True,
    )
