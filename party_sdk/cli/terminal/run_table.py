"""A session's runs: which figures are shown, and a table of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from party_sdk.cli.terminal.output import align_columns

if TYPE_CHECKING:
    pass

_BESIDE: Final = frozenset({"n_clusters", "gap_error", "gap_of_one"})
_HOW: Final = frozenset({"n_iter", "converged"})


def known_figures(
    runs: Sequence[Mapping[str, Any]], *, qualities: bool = False
) -> list[str]:
    """Return the names of the figures that some run has and that stand for themselves.

    qualities: leave out those that say how a partition was found, not how good it is.
    """
    hidden = _BESIDE | _HOW if qualities else _BESIDE
    names = runs[0] if runs else ()
    return [
        name
        for name in names
        if name not in hidden and any(run[name] is not None for run in runs)
    ]


def no_clusters(where: str = "") -> str:
    """Return what is said where the gap statistic says one cluster."""
    return (
        f"no clusters: {where}the gap statistic says that all rows are one cluster; what "
        "was found are parts of it"
    )


def table_lines(
    n_clusters: Sequence[int],
    figures: Sequence[Mapping[str, Any]],
    chosen: int | None,
    sizes: Sequence[Sequence[int]] = (),
) -> Iterator[str]:
    """Yield a header and a line for each run, the chosen one with a mark.

    sizes: of the clusters of each run, in fives, where they are told.

    Figures that no run has are left out; without any there are no lines.
    """
    if not figures:
        return
    names = known_figures(figures)
    sized = any(sizes)
    rows = [["clusters", *names, *["sizes"] * sized]]
    for number, (k, run) in enumerate(zip(n_clusters, figures, strict=True)):
        mark = " *" if number == chosen else ""
        told = [", ".join(map(str, sizes[number])) or "-"] if sized else []
        rows.append(
            [f"{k}{mark}", *(_format_value(run[name]) for name in names), *told]
        )
    yield from align_columns(rows)
    if figures[0].get("gap") is not None and _says_one(figures):
        yield no_clusters()


def _says_one(figures: Sequence[Mapping[str, Any]]) -> bool:
    from clustering_protocols.numerics.metrics import Figures
    from clustering_protocols.quality.gap import says_one

    return bool(says_one([Figures(**run) for run in figures]))


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value or "-")
