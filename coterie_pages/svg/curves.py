"""Figures over the number of clusters, a panel each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

from clustering_protocols.wire.answers import RunLine
from coterie_pages.formatting import BESIDE, figure, number
from coterie_pages.svg.elements import (
    N_COLOURS,
    element,
    line,
    picture,
    shorten,
    text,
    ticks,
)

_NOT_DRAWN: Final = BESIDE | {"n_iter", "converged"}
_PANEL: Final = (300.0, 190.0)
_ACROSS: Final = 2
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 14.0, 30.0, 30.0
_HEADING: Final = 34.0
_KEY: Final = 22.0
_MOST_NAME: Final = 80
_DASHES: Final = ("none", "7 4", "2 3", "8 3 2 3")
_Point = tuple[RunLine, float]


class Curve(NamedTuple):
    """Runs that belong together, and how their line looks.

    name: what the line stands for; a picture of one line needs none.
    colour, dash: numbers; those of equal ones look alike.
    """

    name: str
    runs: Sequence[RunLine]
    colour: int = 0
    dash: int = 0

    @property
    def style(self) -> str:
        """Return the colour and the dashes of the line."""
        colour = f"var(--c{self.colour % N_COLOURS})"
        return f"stroke:{colour};stroke-dasharray:{_DASHES[self.dash % len(_DASHES)]}"


class _Panel(NamedTuple):
    """A figure, where it is drawn, and the runs of each line that have it."""

    name: str
    lines: Sequence[tuple[Curve, Sequence[_Point]]]
    x: float = 0.0
    y: float = 0.0

    @property
    def points(self) -> list[_Point]:
        """Return what lies in the panel."""
        return [point for _, points in self.lines for point in points]

    @property
    def numbers(self) -> list[int]:
        """Return the numbers of clusters."""
        return sorted({run.n_clusters for run, _ in self.points})

    def place(self, n_clusters: int, value: float) -> tuple[float, float]:
        """Return where a value lies."""
        first, *_, last = [*self.numbers, self.numbers[-1]]
        low, high = self.range
        width = _PANEL[0] - _LEFT - _RIGHT
        height = _PANEL[1] - _TOP - _BOTTOM
        across = (n_clusters - first) / max(1, last - first)
        up = (value - low) / (high - low) if high > low else 0.5
        return self.x + _LEFT + width * across, self.y + _TOP + height * (1 - up)

    @property
    def range(self) -> tuple[float, float]:
        """Return between which values the panel reaches: a little beyond those it has."""
        values = [value for _, value in self.points]
        low, high = min(values), max(values)
        margin = 0.08 * (high - low)
        return low - margin, high + margin


def curves(name: str, title: str, runs: Sequence[RunLine]) -> Markup:
    """Return a panel for each figure that several runs have; nothing where none is."""
    found = [panel for panel in _panels([Curve("", runs)]) if len(panel.points) > 1]
    if not found:
        return Markup("")
    placed, height = _arrange(found, 0.0)
    parts = (part for panel in placed for part in _draw_panel(panel))
    told = "Each panel shows one figure; a ring is around the run that counts."
    return picture(name, title, told, (_PANEL[0] * _ACROSS + 20, height), parts)


def compared_curves(
    name: str, title: str, groups: Sequence[tuple[str, Sequence[Curve]]]
) -> Markup:
    """Return panels of several lines, a heading above those of each group, and a key.

    groups: what stands above the panels, such as a path, or nothing; and the lines.
    """
    parts: list[Markup] = []
    y = 0.0
    for heading, lines in groups:
        if heading:
            short = shorten(heading, _MOST_NAME, keep_end=True)
            parts.append(text(10, y + 22, short, class_="panel"))
            y += _HEADING
        placed, y = _arrange(list(_panels(lines)), y)
        parts += [part for panel in placed for part in _draw_panel(panel)]
    known = {curve.name: curve for _, lines in groups for curve in lines if curve.name}
    for curve in known.values():
        y += _KEY
        parts.append(_line([(10, y - 4), (50, y - 4)], curve))
        parts.append(text(60, y, curve.name))
    told = "Each panel shows one figure; a ring is around each run that counts."
    return picture(name, title, told, (_PANEL[0] * _ACROSS + 20, y + 10), parts)


def _panels(lines: Sequence[Curve]) -> Iterator[_Panel]:
    names = dict.fromkeys(
        name for curve in lines for run in curve.runs[:1] for name in run.figures
    )
    for name in names:
        if name not in _NOT_DRAWN:
            found = [(curve, _points(curve, name)) for curve in lines]
            panel = _Panel(name, [(curve, points) for curve, points in found if points])
            if panel.lines:
                yield panel


def _points(curve: Curve, name: str) -> list[_Point]:
    known = [(run, run.figures.get(name)) for run in curve.runs]
    return [(run, float(value)) for run, value in known if value is not None]


def _arrange(panels: Sequence[_Panel], y: float) -> tuple[list[_Panel], float]:
    """Return panels beside and below each other, and where the last of them end."""
    placed = [
        panel._replace(
            x=_PANEL[0] * (index % _ACROSS) + 10, y=y + _PANEL[1] * (index // _ACROSS)
        )
        for index, panel in enumerate(panels)
    ]
    return placed, y + _PANEL[1] * -(-len(panels) // _ACROSS)


def _draw_panel(panel: _Panel) -> Iterator[Markup]:
    yield text(panel.x + _LEFT, panel.y + 16, figure(panel.name), class_="panel")
    right = panel.x + _PANEL[0] - _RIGHT
    bottom = panel.y + _PANEL[1] - _BOTTOM
    numbers = panel.numbers
    for value in ticks(*panel.range, about=5):
        _, y = panel.place(numbers[0], value)
        yield line(panel.x + _LEFT, y, right, y, class_="grid")
        yield text(panel.x + _LEFT - 6, y + 4, number(value), anchor="end")
    yield line(panel.x + _LEFT, bottom, right, bottom)
    for curve, points in panel.lines:
        places = [panel.place(run.n_clusters, value) for run, value in points]
        yield _line(places, curve)
        mark = {"style": f"fill:var(--c{curve.colour % N_COLOURS})"}
        for (run, _), (x, y) in zip(points, places, strict=True):
            yield element(
                "circle", cx=x, cy=y, r=3.5, class_="mark", **_add_look(curve, mark)
            )
            if run.chosen:
                yield element("circle", cx=x, cy=y, r=8.0, class_="ring")
    for k in numbers[:: -(-len(numbers) // 10)]:
        x, _ = panel.place(k, panel.range[0])
        yield text(x, bottom + 16, str(k), anchor="middle")


def _line(places: Sequence[tuple[float, float]], curve: Curve) -> Markup:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    look = _add_look(curve, {"style": curve.style})
    return element("polyline", points=points, class_="curve", **look)


def _add_look(curve: Curve, look: dict[str, str]) -> dict[str, str]:
    """Return a look of its own, for lines with a name: served pages allow no other."""
    return look if curve.name else {}
