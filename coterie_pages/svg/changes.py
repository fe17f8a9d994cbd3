"""How far each update moved the result, on a scale of powers of ten."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from markupsafe import Markup

from coterie_pages.svg.elements import element, line, picture, text

_WIDTH, _HEIGHT = 640.0, 190.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 14.0, 12.0, 30.0
_MOST_LABELS: Final = 10


def changes(name: str, title: str, moved: Sequence[float]) -> Markup:
    """Return a curve over the updates; those that moved nothing lie on the floor."""
    told = f"From {moved[0]:.2g} at the first update to {moved[-1]:.2g} at update {len(moved)}."
    return picture(name, title, told, (_WIDTH, _HEIGHT), _draw(moved))


def _draw(moved: Sequence[float]) -> Iterator[Markup]:
    low, high = _decades(moved)
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    for decade in range(low, high + 1, max(1, (high - low) // 5)):
        y = bottom - (bottom - _TOP) * (decade - low) / (high - low)
        yield line(_LEFT, y, right, y, class_="grid")
        yield text(_LEFT - 6, y + 4, f"1e{decade}" if decade else "1", anchor="end")
    yield line(_LEFT, bottom, right, bottom)
    step = (right - _LEFT) / max(1, len(moved) - 1)
    places = []
    for index, value in enumerate(moved):
        level = math.log10(value) if value > 0 else low
        share = min(1.0, max(0.0, (level - low) / (high - low)))
        places.append((_LEFT + step * index, bottom - (bottom - _TOP) * share))
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield element("polyline", points=points, class_="curve")
    every = -(-len(moved) // _MOST_LABELS)
    for index, (x, _) in enumerate(places):
        if index % every == 0:
            yield text(x, bottom + 16, str(index + 1), anchor="middle")


def _decades(moved: Sequence[float]) -> tuple[int, int]:
    """Return between which powers of ten the changes lie."""
    levels = [math.log10(value) for value in moved if value > 0] or [0.0]
    low, high = math.floor(min(levels)), math.ceil(max(levels))
    return (low, high) if high > low else (low, low + 1)
