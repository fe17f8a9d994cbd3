"""A profile as a heat map: how far each cluster lies from all lines together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

from clustering_protocols.numerics.profiles import FieldProfile, Profile
from coterie_pages.formatting import cluster_title
from coterie_pages.svg.elements import element, picture, shorten, text

_LABEL: Final = 290.0
_CELL: Final = (76.0, 26.0)
_HEAD: Final = 44.0
_FOOT: Final = 42.0
_FAR: Final = 2.0
_MOST_ROWS: Final = 60
_NAME: Final = 42
_HEADING: Final = 10

_LOW: Final = (33, 102, 172)
_MIDDLE: Final = (247, 247, 247)
_HIGH: Final = (179, 88, 6)
_Colour = tuple[int, int, int]


class Deviations(NamedTuple):
    """One field, or one of its levels: how far each line lies from all together.

    values: in spreads within the lines; None where too few rows have a value.
    """

    name: str
    values: tuple[float | None, ...]


def lines_of(profile: Profile, names: Sequence[str] = ()) -> list[str]:
    """Return what the lines of a profile are called.

    names: of the clusters, by number; '' for those without one.
    """
    found = [cluster_title(label, names) for label in profile.clusters]
    return found + ["others"] * bool(profile.others)


def deviations(profile: Profile) -> Iterator[Deviations]:
    """Yield a row for each field, and for each level of a field that has levels."""
    for field in profile.fields:
        name = field.title or field.name
        if field.levels:
            for place, level in enumerate(field.levels):
                shares = [None if s is None else s[place] for s in field.shares]
                spreads = [
                    None if p is None else math.sqrt(p * (1 - p)) for p in shares
                ]
                yield Deviations(
                    f"{name}: {level}", _standardise(field, shares, spreads)
                )
        else:
            yield Deviations(name, _standardise(field, field.mean, field.spread))


def _standardise(
    field: FieldProfile,
    means: Sequence[float | None],
    spreads: Sequence[float | None],
) -> tuple[float | None, ...]:
    """Return (mean - mean of all lines) / spread within the lines, of each line."""
    told = [
        (n, mean, spread)
        for n, mean, spread in zip(field.n_rows, means, spreads, strict=True)
        if n is not None and mean is not None and spread is not None
    ]
    total = sum(n for n, _, _ in told)
    if not total:
        return (None,) * len(means)
    centre = math.fsum(n * mean for n, mean, _ in told) / total
    within = math.sqrt(math.fsum(n * spread**2 for n, _, spread in told) / total)
    return tuple(None if m is None else _far(m - centre, within) for m in means)


def _far(difference: float, within: float) -> float:
    if within > 0:
        return difference / within
    return 0.0 if difference == 0 else math.copysign(math.inf, difference)


def heat_map(
    name: str, title: str, profile: Profile, names: Sequence[str] = ()
) -> Markup:
    """Return a profile as cells; fields that set clusters apart most are on top."""
    lines, rows = lines_of(profile, names), list(deviations(profile))[:_MOST_ROWS]
    width = _LABEL + _CELL[0] * len(lines) + 10
    height = _HEAD + _CELL[1] * len(rows) + _FOOT
    told = (
        "Each cell is the mean of a cluster minus that of all, in standard deviations "
        "within the clusters; the table below has the values."
    )
    parts = [*_heads(profile, lines), *_rows(rows), *_legend(height)]
    size = (max(width, _LABEL + 260), height)
    return picture(name, title, told, size, parts, class_="heat")


def _heads(profile: Profile, lines: Sequence[str]) -> Iterator[Markup]:
    for place, (line, n_rows) in enumerate(zip(lines, profile.n_rows, strict=True)):
        x = _LABEL + _CELL[0] * (place + 0.5)
        short = shorten(line.removeprefix("cluster "), _HEADING)
        said = line if len(line) <= _HEADING else short
        yield element("g", element("title", line), text(x, 16, said, anchor="middle"))
        yield text(x, 34, f"{n_rows:,} rows", anchor="middle", class_="small")


def _rows(rows: Sequence[Deviations]) -> Iterator[Markup]:
    width, height = _CELL
    for number, row in enumerate(rows):
        top = _HEAD + height * number
        label = text(_LABEL - 10, top + 18, shorten(row.name, _NAME), anchor="end")
        yield element("g", element("title", row.name), label)
        for place, value in enumerate(row.values):
            yield from _cell(_LABEL + width * place, top, value)


def _cell(x: float, y: float, value: float | None) -> Iterator[Markup]:
    width, height = _CELL
    box = (x + 1, y + 1, width - 2, height - 2)
    if value is not None:
        yield from _draw_cell(box, value)
        return
    yield element(
        "rect", x=box[0], y=box[1], width=box[2], height=box[3], class_="none"
    )
    yield text(x + width / 2, y + 18, "–", anchor="middle")


def _format_signed(value: float) -> str:
    if math.isinf(value):
        return "≫" if value > 0 else "≪"
    said = f"{value:+.1f}"
    return "0.0" if said in {"+0.0", "-0.0"} else said.replace("-", "\N{MINUS SIGN}")


def _legend(height: float) -> Iterator[Markup]:
    """Return the colours with their values, below the cells."""
    top = height - 26
    for place, value in enumerate((-2.0, -1.0, 0.0, 1.0, 2.0)):
        box = (_LABEL + 46.0 * place, top, 46.0, 22.0)
        yield from _draw_cell(box, value)
    yield text(_LABEL - 10, top + 16, "standard deviations", anchor="end")


def _draw_cell(
    box: tuple[float, float, float, float], value: float
) -> Iterator[Markup]:
    """Yield a box in the colour of a value, and the value where both can be read."""
    x, y, width, height = box
    colour = _colour(value)
    yield element("rect", x=x, y=y, width=width, height=height, fill=_hex(colour))
    yield element(
        "text",
        _format_signed(value),
        x=x + width / 2,
        y=y + height / 2 + 5,
        text_anchor="middle",
        class_="cell",
        fill=_readable(colour),
    )


def _colour(value: float) -> _Colour:
    """Return the colour of a deviation: blue below, orange above, nearly white at 0."""
    share = min(abs(value) / _FAR, 1.0)
    end = _HIGH if value > 0 else _LOW
    mixed = [round(m + (e - m) * share) for m, e in zip(_MIDDLE, end, strict=True)]
    return mixed[0], mixed[1], mixed[2]


def _hex(colour: _Colour) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def _readable(colour: _Colour) -> str:
    """Return black or white, whichever has the greater contrast (WCAG 2)."""
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (part / 255 for part in colour)
    ]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return (
        "#000000"
        if (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05)
        else "#ffffff"
    )
