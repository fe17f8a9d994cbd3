"""SVG charts, drawn by plain functions without a script or a plotting library.

The page's style sheet sets the colours, so that charts suit dark mode and print. Each
chart has a title and a description, and a table next to it holds its numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.resources import files
from typing import Final, NamedTuple

import numpy as np
from markupsafe import Markup

from clustering_protocols.numerics.profiles import FieldProfile, Profile
from clustering_protocols.numerics.survival import TOO_FEW, Survival, kaplan_meier
from clustering_protocols.wire.answers import RunLine
from coterie_pages.formatting import AUXILIARY, format_number, name_cluster, name_figure
from coterie_pages.models import Points

N_COLOURS: Final = 8


def element(tag: str, *content: str, **attributes: object) -> Markup:
    """Return an SVG element; ``_`` in attribute names is ``-``, and text is escaped."""
    attributes_ = Markup("").join(
        Markup(' {}="{}"').format(name.rstrip("_").replace("_", "-"), _to_text(value))
        for name, value in attributes.items()
    )
    return Markup("<{0}{1}>{2}</{0}>").format(
        Markup(tag),  # noqa: S704  a constant, never a user's text
        attributes_,
        Markup("").join(content),
    )


def picture(
    name: str,
    title: str,
    description: str,
    size: tuple[float, float],
    parts: Iterable[Markup],
    *,
    class_: str = "chart",
) -> Markup:
    """Return a complete SVG image.

    name: an identifier that is unique on the page.
    title, description: the text alternatives for readers who cannot see the image.
    size: the width and height, in pixels at the default scale.
    class_: the CSS class, which controls how the letters of a small image scale.
    """
    width, height = size
    return element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", description, id=f"{name}-desc"),
        *parts,
        viewBox=f"0 0 {_to_text(width)} {_to_text(height)}",
        width=width,
        height=height,
        role="img",
        class_=class_,
        aria_labelledby=f"{name}-title {name}-desc",
    )


def standalone(picture: Markup) -> str:
    """Return an image as the content of an SVG file, including the style sheet."""
    style = files("coterie_pages").joinpath("templates/style.css").read_text()
    tag, _, content = picture.partition(">")
    background = "svg { background: var(--paper); }"
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'{tag} xmlns="http://www.w3.org/2000/svg"><style>{style}{background}</style>{content}\n'
    )


def text(
    x: float, y: float, content: str, *, anchor: str = "start", class_: str = "label"
) -> Markup:
    """Return a text element whose start, middle or end (``anchor``) is at (x, y)."""
    return element("text", content, x=x, y=y, text_anchor=anchor, class_=class_)


def line(x1: float, y1: float, x2: float, y2: float, class_: str = "axis") -> Markup:
    """Return a straight line element from (x1, y1) to (x2, y2)."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def shorten(content: str, length: int) -> str:
    """Truncate a text to ``length`` characters, with an ellipsis at the end."""
    return content if len(content) <= length else f"{content[: length - 1]}…"


def round_ticks(low: float, high: float, count: int = 4) -> list[float]:
    """Return about ``count`` round axis values between ``low`` and ``high``."""
    if not high > low:
        return [low]
    rough = (high - low) / count
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= rough)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def _to_text(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


_WIDTH: Final = 640.0
_ROW: Final = 30.0
_Pair = tuple[float, float]


def rectangle(
    x: float, y: float, width: float, height: float, *content: str, **attributes: object
) -> Markup:
    """Return a rectangle element with its upper left corner at (x, y)."""
    box = {"x": x, "y": y, "width": width, "height": height}
    return element("rect", *content, **box, **attributes)


def _join_points(points: Iterable[_Pair]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


class _Plot(NamedTuple):
    """A plotting area within an image, with linear axes.

    left, top, width, height: in the units of the image.
    x, y: the smallest and the largest value on each axis; ``y`` grows upwards.
    """

    left: float
    top: float
    width: float
    height: float
    x: _Pair = (0.0, 1.0)
    y: _Pair = (0.0, 1.0)

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    def locate(self, x: float, y: float) -> _Pair:
        """Return the image coordinates of a point; the middle if an axis has no length."""
        x_share, y_share = (
            (value - low) / (high - low) if high > low else 0.5
            for value, (low, high) in ((x, self.x), (y, self.y))
        )
        return self.left + self.width * x_share, self.top + self.height * (1 - y_share)

    def draw_grid(
        self, values: Iterable[float], write: Callable[[float], str] = format_number
    ) -> Iterator[Markup]:
        for value in values:
            _, y = self.locate(self.x[0], value)
            yield line(self.left, y, self.right, y, class_="grid")
            yield text(self.left - 6, y + 4, write(value), anchor="end")

    def label_x(self, values: Iterable[float]) -> Iterator[Markup]:
        for value in values:
            x, _ = self.locate(value, self.y[0])
            yield text(x, self.bottom + 17, format_number(value), anchor="middle")

    @property
    def baseline(self) -> Markup:
        return line(self.left, self.bottom, self.right, self.bottom)


def _pick_at_most_ten(values: Sequence[int]) -> Sequence[int]:
    return values[:: -(-len(values) // 10) or 1]


def _widen_range(values: Sequence[float], share_: float) -> _Pair:
    low, high = min(values, default=0.0), max(values, default=1.0)
    margin = share_ * (high - low)
    return low - margin, high + margin


def draw_changes(name: str, title: str, shifts: Sequence[float]) -> Markup:
    """Draw the sizes of the updates on a logarithmic axis, with zeros at the bottom."""
    description = f"From {shifts[0]:.2g} at the first update to {shifts[-1]:.2g} at update {len(shifts)}."
    powers = [math.log10(value) for value in shifts if value > 0] or [0.0]
    low, high = math.floor(min(powers)), math.ceil(max(powers))
    high = max(high, low + 1)
    plot = _Plot(56.0, 12.0, 570.0, 148.0, (1, max(2, len(shifts))), (low, high))
    points = (
        plot.locate(update, math.log10(value) if value > 0 else low)
        for update, value in enumerate(shifts, 1)
    )
    parts = [
        *plot.draw_grid(
            range(low, high + 1, max(1, (high - low) // 5)),
            lambda power: f"1e{power}" if power else "1",
        ),
        plot.baseline,
        element("polyline", points=_join_points(points), class_="curve"),
        *plot.label_x(_pick_at_most_ten(range(1, len(shifts) + 1))),
    ]
    return picture(name, title, description, (_WIDTH, 190.0), parts)


_NOT_DRAWN: Final = AUXILIARY | {"n_iter", "converged"}
_PANEL: Final = (300.0, 190.0)


def draw_figures(name: str, title: str, runs: Sequence[RunLine]) -> Markup:
    """Draw one panel for each figure that at least two runs have."""
    panels = []
    for figure_ in runs[0].figures if runs else ():
        values = ((run, run.figures.get(figure_)) for run in runs)
        points = [(run, float(value)) for run, value in values if value is not None]
        if len(points) > 1 and figure_ not in _NOT_DRAWN:
            panels.append((figure_, points))
    if not panels:
        return Markup("")
    parts = (
        part
        for index, (figure_, points) in enumerate(panels)
        for part in _draw_panel(figure_, points, *divmod(index, 2))
    )
    description = "Each panel shows one figure; the selected run has a ring."
    size = (_PANEL[0] * 2 + 20, _PANEL[1] * -(-len(panels) // 2))
    return picture(name, title, description, size, parts)


def _draw_panel(
    name: str, points: Sequence[tuple[RunLine, float]], row: int, column: int
) -> Iterator[Markup]:
    numbers = sorted({run.n_clusters for run, _ in points})
    plot = _Plot(
        _PANEL[0] * column + 66,
        _PANEL[1] * row + 30,
        _PANEL[0] - 70,
        _PANEL[1] - 60,
        (numbers[0], numbers[-1]),
        _widen_range([value for _, value in points], 0.08),
    )
    yield text(plot.left, plot.top - 14, name_figure(name), class_="panel")
    yield from plot.draw_grid(round_ticks(*plot.y, count=5))
    yield plot.baseline
    corners = [plot.locate(run.n_clusters, value) for run, value in points]
    yield element("polyline", points=_join_points(corners), class_="curve")
    for (run, _), (x, y) in zip(points, corners, strict=True):
        yield element("circle", cx=x, cy=y, r=3.5, class_="mark")
        if run.chosen:
            yield element("circle", cx=x, cy=y, r=8.0, class_="ring")
    yield from plot.label_x(_pick_at_most_ten(numbers))


_LABEL: Final = 290.0
_CELL: Final = (76.0, 26.0)
_HEAD: Final = 44.0
_FOOT: Final = 42.0
_FULL_COLOUR: Final = 2.0
_MOST_ROWS: Final = 60
_LONGEST_NAME: Final = 42
_LONGEST_HEADING: Final = 10
_HALF_RANGE: Final = 2.5
"""Half the width of a variable's axis, in standard deviations."""

_LOW: Final = (33, 102, 172)
_MIDDLE: Final = (247, 247, 247)
_HIGH: Final = (179, 88, 6)


class Deviations(NamedTuple):
    """How far each line of a profile deviates from the overall mean in one variable.

    level: the index of the level, for a variable with levels; otherwise None.
    values: the deviation of each line, in standard deviations within lines; None for a
        line in which too few rows have a value.
    """

    field: FieldProfile
    level: int | None
    values: tuple[float | None, ...]

    @property
    def name(self) -> str:
        """Return the title of the variable, followed by the level if it has one."""
        title = self.field.title or self.field.name
        return (
            title if self.level is None else f"{title}: {self.field.levels[self.level]}"
        )


def lines_of(profile: Profile, names: Sequence[str] = ()) -> list[str]:
    """Return the names of a profile's lines, using the given ``names`` of clusters."""
    if profile.is_description or not names:
        return list(profile.line_names)
    clusters = [name_cluster(label, names) for label in profile.clusters]
    return [*clusters, *profile.line_names[len(clusters) :]]


def deviations(profile: Profile) -> Iterator[Deviations]:
    """Yield the deviations of each variable, or of each level if it has levels."""
    for field in profile.fields:
        for level in range(len(field.levels)):
            shares = [None if s is None else s[level] for s in field.shares]
            spreads = [None if p is None else math.sqrt(p * (1 - p)) for p in shares]
            yield Deviations(field, level, _standardise(field, shares, spreads))
        if not field.levels:
            deviations_ = _standardise(field, field.mean, field.spread)
            yield Deviations(field, None, deviations_)


def _standardise(
    field: FieldProfile,
    means: Sequence[float | None],
    spreads: Sequence[float | None],
) -> tuple[float | None, ...]:
    groups = [
        (n, mean, spread)
        for n, mean, spread in zip(field.n_rows, means, spreads, strict=True)
        if n is not None and mean is not None and spread is not None
    ]
    total = sum(n for n, _, _ in groups)
    if not total:
        return (None,) * len(means)
    centre = math.fsum(n * mean for n, mean, _ in groups) / total
    spread_within = math.sqrt(
        math.fsum(n * spread**2 for n, _, spread in groups) / total
    )
    return tuple(
        None if m is None else _standard_score(m - centre, spread_within) for m in means
    )


def _standard_score(difference: float, spread: float) -> float:
    if spread > 0:
        return difference / spread
    return 0.0 if difference == 0 else math.copysign(math.inf, difference)


def draw_heat_map(
    name: str,
    title: str,
    profile: Profile,
    names: Sequence[str] = (),
    sizes: Sequence[int] = (),
) -> Markup:
    """Draw a profile as a heat map, with the variables that differ most at the top.

    sizes: the number of rows of each cluster, as in the other tables of the page; by
        default, the numbers in the profile.
    """
    lines, rows = lines_of(profile, names), list(deviations(profile))[:_MOST_ROWS]
    width = _LABEL + _CELL[0] * len(lines) + 10
    height = _HEAD + _CELL[1] * len(rows) + _FOOT
    description = (
        "Each cell is the mean of a cluster minus that of all, in standard deviations "
        "within the clusters; the table below has the values."
    )
    counts = profile.n_rows
    if max((*profile.clusters, *profile.others), default=0) < len(sizes):
        others = sum(sizes[cluster] for cluster in profile.others)
        counts = (*(sizes[cluster] for cluster in profile.clusters), others)
    parts: list[Markup] = []
    for index, (line, n_rows) in enumerate(zip(lines, counts, strict=False)):
        x, heading = _LABEL + _CELL[0] * (index + 0.5), line
        if len(line) > _LONGEST_HEADING:
            heading = shorten(line.removeprefix("cluster "), _LONGEST_HEADING)
        label = text(x, 16, heading, anchor="middle")
        parts += [element("g", element("title", line), label)]
        parts += [text(x, 34, f"{n_rows:,} rows", anchor="middle", class_="small")]
    for row_index, row in enumerate(rows):
        top = _HEAD + _CELL[1] * row_index
        parts += [_hinted_name(row.name, _LABEL - 10, top + 18)]
        for column, value in enumerate(row.values):
            corner = (_LABEL + _CELL[0] * column + 1, top + 1)
            parts += _draw_cell((*corner, _CELL[0] - 2, _CELL[1] - 2), value)
    top = height - 26
    for column, value in enumerate((-2.0, -1.0, 0.0, 1.0, 2.0)):
        parts += _draw_cell((_LABEL + 46.0 * column, top, 46.0, 22.0), value)
    parts += [text(_LABEL - 10, top + 16, "standard deviations", anchor="end")]
    size = (max(width, _LABEL + 260), height)
    return picture(name, title, description, size, parts, class_="heat")


def draw_distributions(name: str, title: str, profile: Profile) -> Markup:
    """Draw a row for each described variable: quartiles, or proportions of levels."""
    fields = profile.fields[:_MOST_ROWS]
    description = (
        "A number has its mean as a mark, one standard deviation on either side as a line "
        "and quartiles as a box; levels have their proportions. The table has the values."
    )
    parts = (
        part
        for row, field in enumerate(fields)
        for part in _draw_distribution(row, field)
    )
    return picture(name, title, description, (_WIDTH, _ROW * len(fields)), parts)


def _draw_distribution(row: int, field: FieldProfile) -> Iterator[Markup]:
    left, width, top = _LABEL + 10, _WIDTH - _LABEL - 20, _ROW * row
    yield _hinted_name(field.title or field.name, _LABEL - 10, top + 20)
    for level, part in enumerate(field.shares[0] or () if field.levels else ()):
        hint = element("title", f"{field.levels[level]}: {part:.0%}")
        colour = f"c{level % N_COLOURS}"
        yield rectangle(left, top + 6, width * part, _ROW - 12, hint, class_=colour)
        left += width * part
    mean, spread = (None, None) if field.levels else (field.mean[0], field.spread[0])
    if mean is None or not spread:
        return
    plot = _Plot(
        left,
        top,
        width,
        _ROW,
        (mean - _HALF_RANGE * spread, mean + _HALF_RANGE * spread),
    )

    def x_of(value: float) -> float:
        return plot.locate(min(max(value, plot.x[0]), plot.x[1]), 0.5)[0]

    middle = top + _ROW / 2
    yield line(x_of(mean - spread), middle, x_of(mean + spread), middle, "curve")
    first, _, third = (field.quartiles[0] if field.quartiles else None) or (None,) * 3
    if first is not None and third is not None:
        length = max(x_of(third) - x_of(first), 1.0)
        yield rectangle(x_of(first), top + 7, length, _ROW - 14, class_="ring")
    yield element("circle", cx=x_of(mean), cy=middle, r=4, class_="mark")


def _hinted_name(name: str, x: float, y: float) -> Markup:
    """Return a truncated name that ends at (x, y), with the full name as a tooltip."""
    label = text(x, y, shorten(name, _LONGEST_NAME), anchor="end")
    return element("g", element("title", name), label)


def draw_survival(
    name: str, title: str, time: Survival, lines: Sequence[str]
) -> Markup:
    """Draw Kaplan-Meier curves with 95 % bands, and the rows at risk below them.

    lines: the names of the lines in the profile.
    """
    plot = _Plot(110.0, 12.0, 500.0, 240.0, (0.0, time.most))
    curves_shown = [(i, line) for i, line in enumerate(time.lines[:N_COLOURS]) if line]
    unit = f", {time.unit}" if time.unit else ""
    caption = f"{time.title or time.name}{unit}; rows at risk below"
    times = round_ticks(0.0, time.most, 5)
    parts = [
        *plot.draw_grid((0.0, 0.25, 0.5, 0.75, 1.0), "{:.0%}".format),
        plot.baseline,
        *plot.label_x(times),
        text(plot.left, plot.bottom + 38, caption),
    ]
    for row, (index, survival) in enumerate(curves_shown):
        y, colour = plot.bottom + 58 + 20 * row, f"c{index}"
        parts += [rectangle(2, y - 9, 10, 10, class_=colour)]
        parts += [text(18, y, shorten(lines[index], 12))]
        if not survival.shows_events:
            parts += [text(plot.left, y, TOO_FEW, class_="small")]
            continue
        for tick, n_rows in zip(
            times, survival.count_at_risk(np.array(times)), strict=True
        ):
            x, _ = plot.locate(tick, 0.0)
            parts += [text(x, y, f"{int(n_rows):,}", anchor="middle", class_="small")]
        curve = kaplan_meier(survival)
        middle, low, high = (
            _step_points(plot, curve.ends, shares)
            for shares in (curve.survival, curve.low, curve.high)
        )
        band = _join_points([*high, *reversed(low)])
        parts += [element("polygon", points=band, class_=colour, fill_opacity="0.15")]
        parts += [
            element("polyline", points=_join_points(middle), class_=f"step {colour}")
        ]
    description = "The proportion without the event over time; the table has values."
    size = (_WIDTH, plot.bottom + 60 + 20 * len(curves_shown))
    return picture(name, title, description, size, parts)


def _step_points(
    plot: _Plot, ends: Iterable[float], shares: Iterable[float]
) -> list[_Pair]:
    corners, share = [(0.0, 1.0)], 1.0
    for end, next_share in zip(ends, shares, strict=True):
        corners += [(end, share), (end, next_share)]
        share = next_share
    return [plot.locate(*corner) for corner in corners]


def _format_signed(value: float) -> str:
    if math.isinf(value):
        return "≫" if value > 0 else "≪"
    text = f"{value:+.1f}"
    return "0.0" if text in {"+0.0", "-0.0"} else text.replace("-", "\N{MINUS SIGN}")


def _draw_cell(
    box: tuple[float, float, float, float], value: float | None
) -> Iterator[Markup]:
    x, y, width, height = box
    centre = {"x": x + width / 2, "y": y + height / 2 + 5, "text_anchor": "middle"}
    if value is None:
        yield rectangle(*box, class_="none")
        yield element("text", "–", **centre, class_="label")
        return
    share = min(abs(value) / _FULL_COLOUR, 1.0)
    end = _HIGH if value > 0 else _LOW
    colour = [round(m + (e - m) * share) for m, e in zip(_MIDDLE, end, strict=True)]
    yield rectangle(*box, fill="#{:02x}{:02x}{:02x}".format(*colour))
    signed, ink = _format_signed(value), _contrasting_ink(colour)
    yield element("text", signed, **centre, class_="cell", fill=ink)


def _contrasting_ink(colour: Sequence[int]) -> str:
    """Return black or white, whichever contrasts more with the colour (WCAG 2)."""
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


_LEGEND_COLUMNS: Final = 5
_SHAPES: Final = (
    "m-3.2,0a3.2,3.2 0 1,0 6.4,0a3.2,3.2 0 1,0 -6.4,0z",
    "m-2.9,-2.9h5.8v5.8h-5.8z",
    "m0,-3.8l3.6,6.2h-7.2z",
    "m0,-4l4,4l-4,4l-4,-4z",
    "m-1.2,-4h2.4v2.8h2.8v2.4h-2.8v2.8h-2.4v-2.8h-2.8v-2.4h2.8z",
    "m0,3.8l-3.6,-6.2h7.2z",
)
"""SVG paths of the markers, because colour alone may not distinguish clusters."""


def draw_scatter(name: str, title: str, points: Points) -> Markup:
    """Draw a scatter plot of the points, with axes and a legend of colours and shapes."""
    clusters = sorted(set(points.labels))
    outlines = points.outlines
    xs = [*points.x, *(x for outline in outlines for x in outline.x)]
    ys = [*points.y, *(y for outline in outlines for y in outline.y)]
    plot = _Plot(
        56.0, 12.0, 572.0, 380.0, _widen_range(xs, 0.04), _widen_range(ys, 0.04)
    )
    first, second = (f"{part:.0%}" for part in points.explained)
    axis_label, y = f"→ first principal axis ({first} of variance)", plot.bottom + 38
    columns = round_ticks(*plot.x, count=6)
    parts = [
        *(
            line(x, plot.top, x, plot.bottom, class_="grid")
            for x, _ in (plot.locate(value, plot.y[0]) for value in columns)
        ),
        *plot.label_x(columns),
        *plot.draw_grid(round_ticks(*plot.y, count=5)),
        text(plot.right, y, axis_label, anchor="end"),
        text(plot.left + 6, plot.top + 16, f"↑ second ({second})"),
    ]
    for index, cluster in enumerate(clusters):
        points_of_cluster = (
            plot.locate(x, y)
            for x, y, label in zip(points.x, points.y, points.labels, strict=True)
            if label == cluster
        )
        parts += [_draw_points(points_of_cluster, cluster)]
        x = plot.left + plot.width / _LEGEND_COLUMNS * (index % _LEGEND_COLUMNS) + 8
        y = plot.bottom + 62 + 24 * (index // _LEGEND_COLUMNS)
        label = "no cluster" if cluster < 0 else f"cluster {cluster}"
        parts += [_draw_points([(x, y - 4)], cluster), text(x + 12, y, label)]
    for outline in outlines:
        corners = itertools.starmap(plot.locate, zip(outline.x, outline.y, strict=True))
        path = "L".join(f"{x:.1f},{y:.1f}" for x, y in corners)
        kind = f"step c{outline.cluster % N_COLOURS}"
        parts += [element("path", d=f"M{path}Z", class_=kind)]
    description = (
        f"{len(points.x):,} of {points.n_rows:,} rows in {len(clusters)} groups."
    )
    height = plot.bottom + 56 + 24 * -(-len(clusters) // _LEGEND_COLUMNS)
    return picture(name, title, description, (_WIDTH, height), parts)


def _draw_points(points: Iterable[_Pair], cluster: int) -> Markup:
    shape = _SHAPES[cluster % len(_SHAPES)]
    kind = "none" if cluster < 0 else f"c{cluster % N_COLOURS}"
    path = "".join(f"M{x:.1f},{y:.1f}{shape}" for x, y in points)
    return element("path", d=path, class_=f"point {kind}")
