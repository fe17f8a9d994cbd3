"""Stage: parties that hold different rows agree on a start, the initial centroids V(0).

Centroids are in scaled units, and none of them is a single row.

| round | task → contribution | envelopes |
|---|---|---|
| 1, `careful` | `propose` → `proposed` | `candidates` to the leader |
| 2 | `settle` → `settled` | from the leader: `start-centroids` |
| 3 | `confirm` → `confirmed` | |

The third round makes sure that every party has the start, even if it is not asked for
the first update.

A protocol that uses this stage has the parameters ``n_clusters``, ``init``, ``start``,
``initial_centroids`` and ``scaling``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.common.limits import LARGEST_NUMBER, LEAST_OWN_ROWS
from clustering_protocols.contract import Exchange, Stage, role_factories
from clustering_protocols.terms.terms import Layout

from . import messages

FROM_PARTIES: Final = ("careful", "random_party")
"""The kinds of start that parties derive from their own rows."""

_role = role_factories(__name__)


def check_initial_centroids(params: Any) -> None:
    """Raise InvalidParameters if ``initial_centroids`` contradict the other parameters."""
    centroids = params.initial_centroids
    if (params.start == "given") != (centroids is not None):
        raise InvalidParameters("init 'given' and initial_centroids need each other.")
    if centroids is not None and len(centroids) != params.n_clusters:
        raise InvalidParameters(
            f"initial_centroids has {len(centroids)} rows for {params.n_clusters} "
            "clusters."
        )
    if any(abs(value) > LARGEST_NUMBER for row in centroids or () for value in row):
        raise InvalidParameters(
            f"initial_centroids must be between -{LARGEST_NUMBER:g} and "
            f"{LARGEST_NUMBER:g}: squares of larger numbers overflow."
        )


def check_given_start_has_one_run(runs: Sequence[Any]) -> None:
    """Raise InvalidParameters if initial centroids are given for several runs."""
    if len(runs) > 1 and runs[-1].initial_centroids is not None:
        raise InvalidParameters(
            "initial_centroids fix the number of clusters: to try several n_clusters, "
            "choose another start."
        )


def describe_few_rows(params: Any, layout: Layout, sizes: Sequence[int]) -> str:
    """Return a note if parties have few rows of each cluster on average, or else ""."""
    mean = sum(sizes) / (len(layout.slots) * max(len(sizes), 1))
    if params.start != "careful" or not 0 < mean < LEAST_OWN_ROWS:
        return ""
    return (
        f"A party has {mean:.1f} rows of each cluster on average, and starts "
        "from clusters of five"
    )


def build_stage(params: Any) -> Stage:
    """Return the stage in which parties derive a start from their own rows."""
    propose = Exchange(messages.Propose, messages.StartProposal)
    stage = Stage.relaying(
        *([propose] if params.start == "careful" else []),
        Exchange(messages.Settle, messages.StartSettled),
        Exchange(messages.KeepStart, messages.StartKept),
        name="start",
        party=_role("roles:StartParty"),
        envelopes=(messages.Candidates, messages.StartCentroids),
    )
    return replace(stage, each_run=True)
