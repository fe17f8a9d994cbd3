"""Pictures as SVG, drawn by plain functions: no script, no library, nothing fetched.

Colours come from the page's style, so that dark screens and paper have theirs; each
picture has a title and a description, and its numbers stand in a table beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from importlib.resources import files
from typing import Final, NamedTuple

import numpy as np
from markupsafe import Markup

from clustering_protocols.numerics.profiles import FieldProfile, Profile
from clustering_protocols.numerics.survival import (
    Curve as SurvivalCurve,
    Survival,
    SurvivalLine,
    kaplan_meier,
)
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.wire.answers import RunLine
from coterie_pages.formatting import BESIDE, cluster_title, figure, number, share
from coterie_pages.models import Points, Timeline, Work

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


def shorten(said: str, most: int) -> str:
    """Return a text of so many characters at most."""
    return said if len(said) <= most else f"{said[: most - 1]}…"


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


_BARS_WIDTH: Final = 640.0
_ROW: Final = 30.0
_BARS_LEFT: Final = 96.0
_BARS_RIGHT: Final = 128.0


def bars(name: str, title: str, sizes: Sequence[int]) -> Markup:
    """Return a bar for each cluster, with its rows and their share."""
    told = ", ".join(f"cluster {n}: {size} rows" for n, size in enumerate(sizes))
    return picture(name, title, told, (_BARS_WIDTH, _ROW * len(sizes)), _bars(sizes))


def _bars(sizes: Sequence[int]) -> Iterator[Markup]:
    total, most = sum(sizes), max(sizes, default=0)
    room = _BARS_WIDTH - _BARS_LEFT - _BARS_RIGHT
    for cluster, size in enumerate(sizes):
        top = cluster * _ROW
        length = room * size / most if most else 0.0
        yield text(_BARS_LEFT - 12, top + 20, f"cluster {cluster}", anchor="end")
        yield element(
            "rect",
            x=_BARS_LEFT,
            y=top + 5,
            width=length,
            height=_ROW - 10,
            class_="bar",
        )
        yield text(
            _BARS_LEFT + length + 8,
            top + 20,
            f"{size:,} ({share(size, total)})",
            class_="value",
        )


_BLOCKS_PLOT: Final = (30.0, 10.0, 600.0, 420.0)  # left, top, width, height
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
    left, top, width, height = _BLOCKS_PLOT
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
    left, top, width, height = _BLOCKS_PLOT
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


_CHANGES_WIDTH, _HEIGHT = 640.0, 190.0
_CHANGES_LEFT, _CHANGES_RIGHT, _CHANGES_TOP, _CHANGES_BOTTOM = 56.0, 14.0, 12.0, 30.0
_MOST_LABELS: Final = 10


def changes(name: str, title: str, moved: Sequence[float]) -> Markup:
    """Return a curve over the updates; those that moved nothing lie on the floor."""
    told = f"From {moved[0]:.2g} at the first update to {moved[-1]:.2g} at update {len(moved)}."
    return picture(name, title, told, (_CHANGES_WIDTH, _HEIGHT), _draw_changes(moved))


def _draw_changes(moved: Sequence[float]) -> Iterator[Markup]:
    low, high = _decades(moved)
    bottom, right = _HEIGHT - _CHANGES_BOTTOM, _CHANGES_WIDTH - _CHANGES_RIGHT
    for decade in range(low, high + 1, max(1, (high - low) // 5)):
        y = bottom - (bottom - _CHANGES_TOP) * (decade - low) / (high - low)
        yield line(_CHANGES_LEFT, y, right, y, class_="grid")
        yield text(
            _CHANGES_LEFT - 6, y + 4, f"1e{decade}" if decade else "1", anchor="end"
        )
    yield line(_CHANGES_LEFT, bottom, right, bottom)
    step = (right - _CHANGES_LEFT) / max(1, len(moved) - 1)
    places = []
    for index, value in enumerate(moved):
        level = math.log10(value) if value > 0 else low
        share = min(1.0, max(0.0, (level - low) / (high - low)))
        places.append(
            (_CHANGES_LEFT + step * index, bottom - (bottom - _CHANGES_TOP) * share)
        )
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


_NOT_DRAWN: Final = BESIDE | {"n_iter", "converged"}
_PANEL: Final = (300.0, 190.0)
_ACROSS: Final = 2
_CURVES_LEFT, _CURVES_RIGHT, _CURVES_TOP, _CURVES_BOTTOM = 56.0, 14.0, 30.0, 30.0
_Point = tuple[RunLine, float]


class _Panel(NamedTuple):
    """A figure, where it is drawn, and the runs that have it."""

    name: str
    points: Sequence[_Point]
    x: float = 0.0
    y: float = 0.0

    @property
    def numbers(self) -> list[int]:
        """Return the numbers of clusters."""
        return sorted({run.n_clusters for run, _ in self.points})

    def place(self, n_clusters: int, value: float) -> tuple[float, float]:
        """Return where a value lies."""
        first, *_, last = [*self.numbers, self.numbers[-1]]
        low, high = self.range
        width = _PANEL[0] - _CURVES_LEFT - _CURVES_RIGHT
        height = _PANEL[1] - _CURVES_TOP - _CURVES_BOTTOM
        across = (n_clusters - first) / max(1, last - first)
        up = (value - low) / (high - low) if high > low else 0.5
        return self.x + _CURVES_LEFT + width * across, self.y + _CURVES_TOP + height * (
            1 - up
        )

    @property
    def range(self) -> tuple[float, float]:
        """Return between which values the panel reaches: a little beyond those it has."""
        values = [value for _, value in self.points]
        low, high = min(values), max(values)
        margin = 0.08 * (high - low)
        return low - margin, high + margin


def curves(name: str, title: str, runs: Sequence[RunLine]) -> Markup:
    """Return a panel for each figure that several runs have; nothing where none is."""
    found = list(_panels(runs))
    if not found:
        return Markup("")
    parts = (part for panel in found for part in _draw_panel(panel))
    told = "Each panel shows one figure; a ring is around the run that counts."
    height = _PANEL[1] * -(-len(found) // _ACROSS)
    return picture(name, title, told, (_PANEL[0] * _ACROSS + 20, height), parts)


def _panels(runs: Sequence[RunLine]) -> Iterator[_Panel]:
    """Yield the figures that runs have, beside and below each other."""
    drawn = [name for run in runs[:1] for name in run.figures if name not in _NOT_DRAWN]
    place = 0
    for name in drawn:
        known = [(run, run.figures.get(name)) for run in runs]
        points = [(run, float(value)) for run, value in known if value is not None]
        if len(points) > 1:
            x = _PANEL[0] * (place % _ACROSS) + 10
            yield _Panel(name, points, x, _PANEL[1] * (place // _ACROSS))
            place += 1


def _draw_panel(panel: _Panel) -> Iterator[Markup]:
    yield text(panel.x + _CURVES_LEFT, panel.y + 16, figure(panel.name), class_="panel")
    right = panel.x + _PANEL[0] - _CURVES_RIGHT
    bottom = panel.y + _PANEL[1] - _CURVES_BOTTOM
    numbers = panel.numbers
    for value in ticks(*panel.range, about=5):
        _, y = panel.place(numbers[0], value)
        yield line(panel.x + _CURVES_LEFT, y, right, y, class_="grid")
        yield text(panel.x + _CURVES_LEFT - 6, y + 4, number(value), anchor="end")
    yield line(panel.x + _CURVES_LEFT, bottom, right, bottom)
    places = [panel.place(run.n_clusters, value) for run, value in panel.points]
    line_of = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield element("polyline", points=line_of, class_="curve")
    for (run, _), (x, y) in zip(panel.points, places, strict=True):
        yield element("circle", cx=x, cy=y, r=3.5, class_="mark")
        if run.chosen:
            yield element("circle", cx=x, cy=y, r=8.0, class_="ring")
    for k in numbers[:: -(-len(numbers) // 10)]:
        x, _ = panel.place(k, panel.range[0])
        yield text(x, bottom + 16, str(k), anchor="middle")


_LABEL: Final = 290.0
_CELL: Final = (76.0, 26.0)
_HEAD: Final = 44.0
_FOOT: Final = 42.0
_FAR: Final = 2.0
_MOST_ROWS: Final = 60
_NAME: Final = 42
_HEAT_HEADING: Final = 10

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
    """Return what the lines of a profile are called: "all rows" of a description.

    names: of the clusters, by number; '' for those without one.
    """
    if profile.is_description or not names:
        return list(profile.line_names)
    found = [cluster_title(label, names) for label in profile.clusters]
    return [*found, *profile.line_names[len(found) :]]


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


_REACH: Final = 2.5
"""A variable's line reaches so many standard deviations to both sides of its mean."""


def distributions(name: str, title: str, profile: Profile) -> Markup:
    """Return a line for each field of a description: a box of quartiles, or shares."""
    fields = profile.fields[:_MOST_ROWS]
    told = (
        "Of a number the mean as a mark, one standard deviation to both sides as a line "
        "and the quartiles as a box; of levels their shares. The table has the values."
    )
    drawn = (part for row, each in enumerate(fields) for part in _draw_field(row, each))
    size = (_BARS_WIDTH, _ROW * len(fields))
    return picture(name, title, told, size, drawn)


def _draw_field(row: int, field: FieldProfile) -> Iterator[Markup]:
    left, width = _LABEL + 10, _BARS_WIDTH - _LABEL - 20
    top = _ROW * row
    said = field.title or field.name
    label = text(_LABEL - 10, top + 20, shorten(said, _NAME), anchor="end")
    yield element("g", element("title", said), label)
    if field.levels:
        for place, part in enumerate(field.shares[0] or ()):
            length = width * part
            yield element(
                "rect",
                element("title", f"{field.levels[place]}: {part:.0%}"),
                x=left,
                y=top + 6,
                width=length,
                height=_ROW - 12,
                class_=f"c{place % N_COLOURS}",
            )
            left += length
        return
    mean, spread = field.mean[0], field.spread[0]
    if mean is None or not spread:
        return

    def across(value: float) -> float:
        far = (value - mean) / (2 * _REACH * spread) + 0.5
        return left + width * min(max(far, 0.0), 1.0)

    middle = top + _ROW / 2
    yield line(across(mean - spread), middle, across(mean + spread), middle, "curve")
    quartiles = (field.quartiles[0] if field.quartiles else None) or (None,) * 3
    first, _, third = quartiles
    if first is not None and third is not None:
        box = across(first), across(third)
        yield element(
            "rect",
            x=box[0],
            y=top + 7,
            width=max(box[1] - box[0], 1.0),
            height=_ROW - 14,
            class_="ring",
        )
    yield element("circle", cx=across(mean), cy=middle, r=4, class_="mark")


_CURVE_PLOT: Final = (110.0, 12.0, 500.0, 240.0)  # left, top, width, height


def survival_curves(
    name: str, title: str, time: Survival, lines: Sequence[str]
) -> Markup:
    """Return Kaplan-Meier curves with bands of 95 %, and the rows at risk below.

    lines: what the lines of the profile are called.
    """
    shown = [
        (place, line)
        for place, line in enumerate(time.lines[:N_COLOURS])
        if line is not None
    ]
    told = "The share without the event over time; the table below has the values."
    height = sum(_CURVE_PLOT[1::2]) + 60 + 20 * len(shown)
    parts = [*_survival_axes(time, shown, lines)]
    for place, line in shown:
        parts += _survival_line(time.most, kaplan_meier(line), place)
    return picture(name, title, told, (_BARS_WIDTH, height), parts)


def _survival_axes(
    time: Survival, shown: Sequence[tuple[int, SurvivalLine]], lines: Sequence[str]
) -> Iterator[Markup]:
    left, top, width, height = _CURVE_PLOT
    bottom = top + height
    for share_ in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = bottom - height * share_
        yield line(left, y, left + width, y, "axis" if share_ == 0 else "grid")
        yield text(left - 8, y + 4, f"{share_:.0%}", anchor="end")
    unit = f", {time.unit}" if time.unit else ""
    yield text(
        left, bottom + 38, f"{time.title or time.name}{unit}; rows at risk below"
    )
    for at in ticks(0.0, time.most, 5):
        x = left + width * at / time.most
        yield line(x, bottom, x, bottom + 5)
        yield text(x, bottom + 19, number(at), anchor="middle")
        for row, (_, own) in enumerate(shown):
            n_rows = f"{int(own.at_risk(np.array([at]))[0]):,}"
            yield text(
                x, bottom + 58 + 20 * row, n_rows, anchor="middle", class_="small"
            )
    for row, (place, _) in enumerate(shown):
        y = bottom + 58 + 20 * row
        yield element("rect", x=2, y=y - 9, width=10, height=10, class_=f"c{place}")
        yield text(18, y, shorten(lines[place], 12))


def _survival_line(most: float, curve: SurvivalCurve, place: int) -> Iterator[Markup]:
    left, top, width, height = _CURVE_PLOT

    def steps(shares: FloatArray) -> list[str]:
        """Return the corners of a curve that steps down where bins end."""
        corners, before = [], 1.0
        for end, after in zip(curve.ends, shares, strict=True):
            x = left + width * end / most
            corners += [(x, before), (x, after)]
            before = after
        return [
            f"{x:.1f},{top + height * (1 - y):.1f}" for x, y in [(left, 1.0), *corners]
        ]

    band = [*steps(curve.high), *reversed(steps(curve.low))]
    colour = f"c{place}"
    yield element("polygon", points=" ".join(band), class_=colour, fill_opacity="0.15")
    yield element(
        "polyline",
        points=" ".join(steps(curve.survival)),
        class_=f"step {colour}",
    )


def _heads(profile: Profile, lines: Sequence[str]) -> Iterator[Markup]:
    for place, (line, n_rows) in enumerate(zip(lines, profile.n_rows, strict=True)):
        x = _LABEL + _CELL[0] * (place + 0.5)
        short = shorten(line.removeprefix("cluster "), _HEAT_HEADING)
        said = line if len(line) <= _HEAT_HEADING else short
        yield element("g", element("title", line), text(x, 16, said, anchor="middle"))
        yield text(x, 34, f"{n_rows:,} rows", anchor="middle", class_="small")


def _rows(rows: Sequence[Deviations]) -> Iterator[Markup]:
    width, height = _CELL
    for index, row in enumerate(rows):
        top = _HEAD + height * index
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


_SCATTER_WIDTH: Final = 640.0
_SCATTER_PLOT: Final = (56.0, 12.0, 572.0, 380.0)  # left, top, width, height
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
    height = _SCATTER_PLOT[1] + _SCATTER_PLOT[3] + 56 + 24 * rows
    told = f"{len(points.x):,} of {points.n_rows:,} rows in {len(clusters)} groups."
    parts = [*_axes(points), *_points_scatter(points, clusters), *_keys(clusters)]
    return picture(name, title, told, (_SCATTER_WIDTH, height), parts)


def _ends(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values, default=0.0), max(values, default=1.0)
    margin = (high - low) * 0.04 or 1.0
    return low - margin, high + margin


def _across(points: Points, x: float) -> float:
    low, high = _ends(points.x)
    return _SCATTER_PLOT[0] + _SCATTER_PLOT[2] * (x - low) / (high - low)


def _up(points: Points, y: float) -> float:
    low, high = _ends(points.y)
    return _SCATTER_PLOT[1] + _SCATTER_PLOT[3] * (1 - (y - low) / (high - low))


def _axes(points: Points) -> Iterator[Markup]:
    left, top, width, height = _SCATTER_PLOT
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


def _points_scatter(points: Points, clusters: Sequence[int]) -> Iterator[Markup]:
    for cluster in clusters:
        shape = _SHAPES[cluster % len(_SHAPES)]
        drawn = [
            f"M{_across(points, x):.1f},{_up(points, y):.1f}{shape}"
            for x, y, label in zip(points.x, points.y, points.labels, strict=True)
            if label == cluster
        ]
        yield element("path", d="".join(drawn), class_=_class(cluster))


def _keys(clusters: Sequence[int]) -> Iterator[Markup]:
    left, top, width, height = _SCATTER_PLOT
    for place, cluster in enumerate(clusters):
        x = left + width / _KEYS * (place % _KEYS) + 8
        y = top + height + 62 + 24 * (place // _KEYS)
        shape = _SHAPES[cluster % len(_SHAPES)]
        yield element("path", d=f"M{x:.1f},{y - 4:.1f}{shape}", class_=_class(cluster))
        said = "no cluster" if cluster < 0 else f"cluster {cluster}"
        yield text(x + 12, y, said)


def _class(cluster: int) -> str:
    return "point none" if cluster < 0 else f"point c{cluster % N_COLOURS}"


_TIMELINE_WIDTH: Final = 840.0
_LANE: Final = 26.0
_TIMELINE_LEFT, _TIMELINE_RIGHT, _TIMELINE_TOP, _TIMELINE_BOTTOM = (
    150.0,
    20.0,
    8.0,
    30.0,
)
_TIMELINE_MOST_NAME: Final = 12
_LABELS: Final = 5
_LEAST_WIDTH: Final = 1.0
_LETTER: Final = 6.5  # the usual width of one


class _TimeScale(NamedTuple):
    """The stretch of time that is drawn."""

    begin: datetime
    seconds: float

    def place(self, at: datetime) -> float:
        """Return where a time lies, from left to right."""
        share = (at - self.begin).total_seconds() / self.seconds
        return (
            _TIMELINE_LEFT
            + (_TIMELINE_WIDTH - _TIMELINE_LEFT - _TIMELINE_RIGHT) * share
        )


def timeline(name: str, title: str, told: Timeline) -> Markup:
    """Return lanes of stages and rounds, and a lane of marks for each slot."""
    height = (
        _TIMELINE_TOP
        + _LANE * (_lanes_above(told) + len(told.slots))
        + _TIMELINE_BOTTOM
    )
    rounds = sum(each.rounds for each in told.work)
    said = f"{rounds} rounds, {len(told.answers)} answers of {len(told.slots)} slots."
    size = (_TIMELINE_WIDTH, height)
    return picture(
        name, title, said, size, _draw_timeline(told, height), class_="timeline"
    )


def _draw_timeline(told: Timeline, height: float) -> Iterator[Markup]:
    scale = _scale(told)
    bottom = height - _TIMELINE_BOTTOM
    yield from _axis(scale, bottom)
    top = _TIMELINE_TOP + _LANE * (_lanes_above(told) - 1)
    yield from _stages(told, scale)
    yield text(_TIMELINE_LEFT - 10, top + 17, "rounds", anchor="end")
    for index, work in enumerate(told.work):
        x = scale.place(work.begin)
        width = max(_LEAST_WIDTH, scale.place(work.end) - x)
        kind = "stage" if index % 2 else "stage alt"
        shape = {"x": x, "y": top + 4, "width": width, "height": _LANE - 8}
        yield element("rect", element("title", _span(work)), class_=kind, **shape)
    for lane, slot in enumerate(told.slots, start=1):
        y = top + _LANE * lane
        yield text(
            _TIMELINE_LEFT - 10,
            y + 17,
            shorten(slot, _TIMELINE_MOST_NAME),
            anchor="end",
            class_="small",
        )
        yield line(
            _TIMELINE_LEFT,
            y + _LANE / 2,
            _TIMELINE_WIDTH - _TIMELINE_RIGHT,
            y + _LANE / 2,
            class_="grid",
        )
        for answer in told.joined:
            if answer.slot == slot:
                x = scale.place(answer.at)
                yield element("circle", cx=x, cy=y + _LANE / 2, r=5.5, class_="ring")
        for answer in told.answers:
            if answer.slot == slot:
                x = scale.place(answer.at)
                yield element("circle", cx=x, cy=y + _LANE / 2, r=3.0, class_="mark")


def _lanes_above(told: Timeline) -> int:
    return 2 if told.stages else 1


def _stages(told: Timeline, scale: _TimeScale) -> Iterator[Markup]:
    """Yield a line for each stage, with its name where there is room for it."""
    if told.stages:
        yield text(_TIMELINE_LEFT - 10, _TIMELINE_TOP + 17, "stages", anchor="end")
    for index, stage in enumerate(told.stages):
        x = scale.place(stage.begin)
        width = max(_LEAST_WIDTH, scale.place(stage.end) - x)
        kind = "stage" if index % 2 else "stage alt"
        shape = {"x": x, "y": _TIMELINE_TOP + 18, "width": width, "height": 4}
        yield element("rect", element("title", stage.name), class_=kind, **shape)
        if width > _LETTER * len(stage.name):
            yield text(x, _TIMELINE_TOP + 13, stage.name, class_="small roomy")


def _axis(scale: _TimeScale, bottom: float) -> Iterator[Markup]:
    yield line(_TIMELINE_LEFT, bottom, _TIMELINE_WIDTH - _TIMELINE_RIGHT, bottom)
    for index in range(_LABELS):
        x = _TIMELINE_LEFT + (
            _TIMELINE_WIDTH - _TIMELINE_LEFT - _TIMELINE_RIGHT
        ) * index / (_LABELS - 1)
        at = datetime.fromtimestamp(
            scale.begin.timestamp() + scale.seconds * index / (_LABELS - 1),
            tz=scale.begin.tzinfo,
        )
        form = "%m-%d %H:%M" if scale.seconds > 86_400 else "%H:%M:%S"
        anchor = "end" if index == _LABELS - 1 else "middle"
        kind = "small roomy" if index % 2 else "small"
        yield text(x, bottom + 22, f"{at:{form}}", anchor=anchor, class_=kind)


def _scale(told: Timeline) -> _TimeScale:
    times = [each.at for each in (*told.joined, *told.answers)]
    times += [time for each in told.work for time in (each.begin, each.end)]
    begin, end = min(times), max(times)
    return _TimeScale(begin, max(1.0, (end - begin).total_seconds()))


def _span(work: Work) -> str:
    last = work.first_round + work.rounds - 1
    if work.rounds == 1:
        return f"round {last}"
    return f"rounds {work.first_round} to {last}"
