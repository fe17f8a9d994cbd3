"""A matrix of rows and columns sorted by cluster, as grey cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from markupsafe import Markup

from coterie_pages.svg.elements import element, line, picture, text

_PLOT: Final = (30.0, 10.0, 600.0, 420.0)  # left, top, width, height
_GREYS: Final = 8


def blocks(
    name: str,
    title: str,
    cells: Sequence[Sequence[float]],
    borders: tuple[Sequence[float], Sequence[float]],
) -> Markup:
    """Return the cells, dark where there is much, and lines between clusters.

    cells: from 0 to 1, row by row.
    borders: between rows and between columns, as shares of the height and the width.
    """
    left, top, width, height = _PLOT
    told = f"{len(borders[0]) + 1} groups of rows, {len(borders[1]) + 1} of columns."
    parts = [
        *_cells(cells),
        *(
            _border(left, top + height * y, left + width, top + height * y)
            for y in borders[0]
        ),
        *(
            _border(left + width * x, top, left + width * x, top + height)
            for x in borders[1]
        ),
        text(left + width / 2, top + height + 20, "items, by cluster", anchor="middle"),
        text(left, top + height + 20, "↑ objects, by cluster"),
    ]
    return picture(name, title, told, (left + width + 10, top + height + 30), parts)


def _cells(cells: Sequence[Sequence[float]]) -> Iterator[Markup]:
    """Yield a path for each shade: one element for each cell would be many."""
    left, top, width, height = _PLOT
    high, wide = height / len(cells), width / len(cells[0])
    for shade in range(1, _GREYS + 1):
        drawn = [
            f"M{left + wide * x:.1f},{top + high * y:.1f}h{wide:.2f}v{high:.2f}h-{wide:.2f}z"
            for y, row in enumerate(cells)
            for x, value in enumerate(row)
            if value > 0 and max(1, round(value * _GREYS)) == shade
        ]
        if drawn:
            yield element(
                "path", d="".join(drawn), fill_opacity=f"{shade / _GREYS:.3f}"
            )


def _border(x1: float, y1: float, x2: float, y2: float) -> Markup:
    return line(x1, y1, x2, y2, class_="ring")
