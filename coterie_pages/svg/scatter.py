"""Own rows on two axes, coloured and shaped by cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from markupsafe import Markup

from coterie_pages.formatting import number
from coterie_pages.models import Points
from coterie_pages.svg.elements import N_COLOURS, element, line, picture, text, ticks

_WIDTH: Final = 640.0
_PLOT: Final = (56.0, 12.0, 572.0, 380.0)  # left, top, width, height
_KEYS: Final = 5
_SHAPES: Final = (
    "m-3.2,0a3.2,3.2 0 1,0 6.4,0a3.2,3.2 0 1,0 -6.4,0z",
    "m-2.9,-2.9h5.8v5.8h-5.8z",
    "m0,-3.8l3.6,6.2h-7.2z",
    "m0,-4l4,4l-4,4l-4,-4z",
    "m-1.2,-4h2.4v2.8h2.8v2.4h-2.8v2.8h-2.4v-2.8h-2.8v-2.4h2.8z",
    "m0,3.8l-3.6,-6.2h7.2z",
)
"""Paths around a point: colour alone does not tell clusters apart."""


def scatter(name: str, title: str, points: Points) -> Markup:
    """Return the points with axes, and what each colour and shape stands for."""
    clusters = sorted(set(points.labels))
    rows = -(-len(clusters) // _KEYS)
    height = _PLOT[1] + _PLOT[3] + 56 + 24 * rows
    told = f"{len(points.x):,} of {points.n_rows:,} rows in {len(clusters)} groups."
    parts = [*_axes(points), *_points(points, clusters), *_keys(clusters)]
    return picture(name, title, told, (_WIDTH, height), parts)


def _ends(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values, default=0.0), max(values, default=1.0)
    margin = (high - low) * 0.04 or 1.0
    return low - margin, high + margin


def _across(points: Points, x: float) -> float:
    low, high = _ends(points.x)
    return _PLOT[0] + _PLOT[2] * (x - low) / (high - low)


def _up(points: Points, y: float) -> float:
    low, high = _ends(points.y)
    return _PLOT[1] + _PLOT[3] * (1 - (y - low) / (high - low))


def _axes(points: Points) -> Iterator[Markup]:
    left, top, width, height = _PLOT
    for value in ticks(*_ends(points.x), about=6):
        x = _across(points, value)
        yield line(x, top, x, top + height, class_="grid")
        yield text(x, top + height + 18, number(value), anchor="middle")
    for value in ticks(*_ends(points.y), about=5):
        y = _up(points, value)
        yield line(left, y, left + width, y, class_="grid")
        yield text(left - 8, y + 4, number(value), anchor="end")
    first, second = points.explained
    yield text(
        left + width,
        top + height + 38,
        f"→ first principal axis ({first:.0%} of the spread)",
        anchor="end",
    )
    yield text(left + 6, top + 16, f"↑ second ({second:.0%})")


def _points(points: Points, clusters: Sequence[int]) -> Iterator[Markup]:
    for cluster in clusters:
        shape = _SHAPES[cluster % len(_SHAPES)]
        drawn = [
            f"M{_across(points, x):.1f},{_up(points, y):.1f}{shape}"
            for x, y, label in zip(points.x, points.y, points.labels, strict=True)
            if label == cluster
        ]
        yield element("path", d="".join(drawn), class_=_class(cluster))


def _keys(clusters: Sequence[int]) -> Iterator[Markup]:
    left, top, width, height = _PLOT
    for place, cluster in enumerate(clusters):
        x = left + width / _KEYS * (place % _KEYS) + 8
        y = top + height + 62 + 24 * (place // _KEYS)
        shape = _SHAPES[cluster % len(_SHAPES)]
        yield element("path", d=f"M{x:.1f},{y - 4:.1f}{shape}", class_=_class(cluster))
        said = "no cluster" if cluster < 0 else f"cluster {cluster}"
        yield text(x + 12, y, said)


def _class(cluster: int) -> str:
    return "point none" if cluster < 0 else f"point c{cluster % N_COLOURS}"
