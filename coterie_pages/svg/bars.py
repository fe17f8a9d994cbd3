"""Sizes as bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from markupsafe import Markup

from coterie_pages.formatting import share
from coterie_pages.svg.elements import element, picture, text

_WIDTH: Final = 640.0
_ROW: Final = 30.0
_LEFT: Final = 96.0
_RIGHT: Final = 128.0


def bars(name: str, title: str, sizes: Sequence[int]) -> Markup:
    """Return a bar for each cluster, with its rows and their share."""
    told = ", ".join(f"cluster {n}: {size} rows" for n, size in enumerate(sizes))
    return picture(name, title, told, (_WIDTH, _ROW * len(sizes)), _bars(sizes))


def _bars(sizes: Sequence[int]) -> Iterator[Markup]:
    total, most = sum(sizes), max(sizes, default=0)
    room = _WIDTH - _LEFT - _RIGHT
    for number, size in enumerate(sizes):
        top = number * _ROW
        length = room * size / most if most else 0.0
        yield text(_LEFT - 12, top + 20, f"cluster {number}", anchor="end")
        yield element(
            "rect", x=_LEFT, y=top + 5, width=length, height=_ROW - 10, class_="bar"
        )
        yield text(
            _LEFT + length + 8,
            top + 20,
            f"{size:,} ({share(size, total)})",
            class_="value",
        )
