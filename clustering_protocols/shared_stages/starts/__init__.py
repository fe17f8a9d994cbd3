"""Stage: parties of split rows agree on a start, the centroids V(0) in scaled units.

No centroid of a start is a single row.

| round | task → contribution | envelopes |
|---|---|---|
| 1, `careful` | `propose` → `proposed` | `candidates` to the leader |
| 2 | `settle` → `settled` | from the leader: `start-centroids`, or `lane-starts` |
| 3 | `confirm` → `confirmed` | |

Several starts, the *lanes* of a race, come as `lane-starts`. After all have confirmed,
every party has the start, even one that is not asked for the first update.

Parameters of a protocol with such starts have ``n_clusters``, ``init`` and ``start``,
``initial_centroids``, ``n_init`` and ``scaling``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.common.limits import LEAST_OWN_ROWS
from clustering_protocols.contract import Exchange, Stage, roles_of
from clustering_protocols.terms.terms import Layout

from . import messages

FROM_PARTIES: Final = ("careful", "random_party")
"""Starts that parties of split rows derive from their rows."""

_role = roles_of(__name__)


def check_initial_centroids(params: Any) -> None:
    """Refuse a given start without centroids, and centroids that do not fit."""
    centroids = params.initial_centroids
    if (params.start == "given") != (centroids is not None):
        raise InvalidParameters("init 'given' and initial_centroids need each other.")
    if centroids is not None and len(centroids) != params.n_clusters:
        raise InvalidParameters(
            f"initial_centroids has {len(centroids)} rows for {params.n_clusters} "
            "clusters."
        )


def check_given_start_has_one_run(runs: Sequence[Any]) -> None:
    """Refuse several numbers of clusters from one given start."""
    if len(runs) > 1 and runs[-1].initial_centroids is not None:
        raise InvalidParameters(
            "initial_centroids fix the number of clusters: to try several n_clusters, "
            "choose another start."
        )


def describe_few_rows(params: Any, layout: Layout, sizes: Sequence[int]) -> str:
    """Return a note if parties have few rows per cluster to start from, else ""."""
    mean = sum(sizes) / (len(layout.slots) * max(len(sizes), 1))
    if params.start != "careful" or not 0 < mean < LEAST_OWN_ROWS:
        return ""
    return (
        f"A party has {mean:.1f} rows of each cluster on average, and starts "
        "from clusters of five"
    )


def build_stage(params: Any) -> Stage:
    """Return the stage of a start that parties derive from their rows."""
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
