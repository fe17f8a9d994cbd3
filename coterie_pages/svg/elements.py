"""Elements of SVG, their texts and attributes escaped."""

from __future__ import annotations

import math
from collections.abc import Iterable
from importlib.resources import files
from typing import Final

from markupsafe import Markup

N_COLOURS: Final = 8


def element(tag: str, *content: str, **attributes: object) -> Markup:
    """Return an element; texts that are no markup are escaped.

    Attributes are written with ``-`` for ``_``; numbers to a tenth of a unit.
    """
    given = Markup("").join(
        Markup(' {}="{}"').format(name.rstrip("_").replace("_", "-"), _plain(value))
        for name, value in attributes.items()
    )
    return Markup("<{0}{1}>{2}</{0}>").format(
        Markup(tag),  # noqa: S704  a name in this package, never a text of others
        given,
        Markup("").join(content),
    )


def picture(
    name: str,
    title: str,
    told: str,
    size: tuple[float, float],
    parts: Iterable[Markup],
    *,
    class_: str = "chart",
) -> Markup:
    """Return a whole picture.

    name: an identifier, the only one of its kind on the page.
    title, told: what it is, and what it shows, for those who do not see it.
    size: width and height in its own units, which are pixels at the usual size.
    class_: how letters grow where the picture is shown small.
    """
    width, height = size
    return element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", told, id=f"{name}-desc"),
        *parts,
        viewBox=f"0 0 {_plain(width)} {_plain(height)}",
        width=width,
        height=height,
        role="img",
        class_=class_,
        aria_labelledby=f"{name}-title {name}-desc",
    )


def standalone(drawn: Markup) -> str:
    """Return a picture as a file of its own, with the style of the pages."""
    style = files("coterie_pages").joinpath("templates/style.css").read_text()
    tag, _, content = drawn.partition(">")
    own = "svg { background: var(--paper); }"
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'{tag} xmlns="http://www.w3.org/2000/svg"><style>{style}{own}</style>{content}\n'
    )


def text(
    x: float, y: float, said: str, *, anchor: str = "start", class_: str = "label"
) -> Markup:
    """Return a line of text whose baseline begins, is centred or ends at a point."""
    return element("text", said, x=x, y=y, text_anchor=anchor, class_=class_)


def line(x1: float, y1: float, x2: float, y2: float, class_: str = "axis") -> Markup:
    """Return a straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def shorten(said: str, most: int, *, keep_end: bool = False) -> str:
    """Return a text of so many characters at most.

    keep_end: whether its end says more than its beginning, as that of a path does.
    """
    if len(said) <= most:
        return said
    return f"…{said[1 - most :]}" if keep_end else f"{said[: most - 1]}…"


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Return round values within a range, about so many."""
    if not high > low:
        return [low]
    rough = (high - low) / about
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= rough)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def _plain(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
