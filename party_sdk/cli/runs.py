"""A session's runs in a table: their figures by name, and which of them counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clustering_protocols.evaluation import Evaluation

_BESIDE = "n_clusters"


def table_lines(
    n_clusters: Sequence[int],
    figures: Sequence[Mapping[str, Any]],
    chosen: int | None,
) -> Iterator[str]:
    """Yield a header and a line for each run, the chosen one with a mark.

    Figures that no run has are left out; without any there are no lines.
    """
    if not figures:
        return
    names = [
        name
        for name in figures[0]
        if name != _BESIDE and any(run[name] is not None for run in figures)
    ]
    rows = [["clusters", *names]]
    for number, (k, run) in enumerate(zip(n_clusters, figures, strict=True)):
        mark = " *" if number == chosen else ""
        rows.append([f"{k}{mark}", *(_shown(run[name]) for name in names)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, strict=True)
        yield "  ".join(cell.ljust(width) for cell, width in cells).rstrip()


def evaluation_line(evaluation: Evaluation) -> str:
    """Return what terms say of several runs, as a sentence."""
    numbers = ", ".join(map(str, evaluation.n_clusters))
    how = {
        "later": "the coordinator reads the figures of all and chooses one",
        "usual": "the usual rule chooses one",
    }.get(evaluation.choose, f"the best by {evaluation.choose} counts")
    return f"runs with {numbers} clusters; {how}"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value or "-")
