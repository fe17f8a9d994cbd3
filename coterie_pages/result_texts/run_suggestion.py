"""Which number of clusters a person may choose, and why: a suggestion, no rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from clustering_protocols.terms.evaluation import LEAST_IS_BEST
from clustering_protocols.wire.answers import RunLine
from coterie_pages.formatting import figure, number

_MEASURES: Final = (
    "simplified_silhouette",
    "silhouette",
    "calinski_harabasz",
    "davies_bouldin",
    "xie_beni",
    "partition_coefficient",
)
_STABLE: Final = 0.75
"""Below, other rows would give other clusters; see the figure's sentence."""
_SMALL: Final = 10


class Suggestion(NamedTuple):
    """A number of clusters, why it, and what speaks against it."""

    n_clusters: int
    reason: str
    doubts: tuple[str, ...] = ()


def suggest_run(runs: Sequence[RunLine]) -> Suggestion | None:
    """Return the run that most quality measures prefer; None where none compares them.

    Runs that are not stable come behind those that are. Of equal ones the run with the
    better first measure is taken, then that of fewer clusters.
    """
    best = {
        name: run for name in _MEASURES if (run := _best_by(runs, name)) is not None
    }
    if len(runs) < 2 or not best:
        return None
    votes = {run.n_clusters: [n for n, b in best.items() if b is run] for run in runs}
    first = next(iter(best.values()))

    def rank(run: RunLine) -> tuple[bool, int, bool, int]:
        known = votes[run.n_clusters]
        return (not _is_stable(run), -len(known), run is not first, run.n_clusters)

    found = min(runs, key=rank)
    named = [figure(name) for name in votes[found.n_clusters]]
    reason = f"best by {_join(named)}" if named else "the most stable"
    stability = found.figures.get("stability")
    if isinstance(stability, float) and _is_stable(found):
        reason += (
            f"; each half of the rows gives it again (stability {number(stability)})"
        )
    return Suggestion(found.n_clusters, reason, tuple(_doubts(found)))


def _best_by(runs: Sequence[RunLine], name: str) -> RunLine | None:
    known = [
        (value, run)
        for run in runs
        if isinstance(value := run.figures.get(name), int | float)
    ]
    if not known:
        return None
    sign = 1 if name in LEAST_IS_BEST else -1
    return min(known, key=lambda pair: (sign * pair[0], pair[1].n_clusters))[1]


def _is_stable(run: RunLine) -> bool:
    stability = run.figures.get("stability")
    return stability is None or stability >= _STABLE


def _doubts(run: RunLine) -> Iterator[str]:
    if not _is_stable(run):
        value = number(run.figures.get("stability"))
        yield f"Each half of the rows gives other clusters (stability {value})."
    if small := [size for size in run.sizes if size <= _SMALL]:
        yield f"Clusters of {_SMALL} rows or fewer: {len(small)}."
    if run.figures.get("converged") is False:
        yield "It did not converge."


def _join(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
