"""Figures over the number of clusters, a panel each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

from coterie_pages.models import Run
from coterie_pages.svg.elements import element, line, picture, text, ticks
from coterie_pages.words import BESIDE, figure, number

_NOT_DRAWN: Final = BESIDE | {"n_iter", "converged"}
_PANEL: Final = (300.0, 190.0)
_ACROSS: Final = 2
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 14.0, 30.0, 30.0


class _Panel(NamedTuple):
    """A figure, where it is drawn, and the runs that have it."""

    name: str
    x: float
    y: float
    runs: Sequence[tuple[Run, float]]

    def place(self, run: Run, value: float) -> tuple[float, float]:
        """Return where a value of a run lies."""
        first, last = self.runs[0][0].n_clusters, self.runs[-1][0].n_clusters
        low, high = self.range
        width = _PANEL[0] - _LEFT - _RIGHT
        height = _PANEL[1] - _TOP - _BOTTOM
        across = (run.n_clusters - first) / max(1, last - first)
        up = (value - low) / (high - low) if high > low else 0.5
        return self.x + _LEFT + width * across, self.y + _TOP + height * (1 - up)

    @property
    def range(self) -> tuple[float, float]:
        """Return between which values the panel reaches: a little beyond those it has."""
        values = [value for _, value in self.runs]
        low, high = min(values), max(values)
        margin = 0.08 * (high - low)
        return low - margin, high + margin


def curves(name: str, title: str, runs: Sequence[Run]) -> Markup:
    """Return a panel for each figure that several runs have; nothing where none is."""
    found = [panel for panel in _panels(runs) if len(panel.runs) > 1]
    if not found:
        return Markup("")
    rows = -(-len(found) // _ACROSS)
    placed = [
        panel._replace(
            x=_PANEL[0] * (index % _ACROSS) + 10, y=_PANEL[1] * (index // _ACROSS)
        )
        for index, panel in enumerate(found)
    ]
    parts = (part for panel in placed for part in _drawn(panel))
    size = (_PANEL[0] * _ACROSS + 20, _PANEL[1] * rows)
    told = "Each panel shows one figure; a ring is around the run that counts."
    return picture(name, title, told, size, parts)


def _panels(runs: Sequence[Run]) -> Iterator[_Panel]:
    for name in runs[0].figures if runs else ():
        if name not in _NOT_DRAWN:
            known = [(run, run.figures.get(name)) for run in runs]
            have = [(run, float(v)) for run, v in known if v is not None]
            yield _Panel(name, 0.0, 0.0, have)


def _drawn(panel: _Panel) -> Iterator[Markup]:
    yield text(panel.x + _LEFT, panel.y + 16, figure(panel.name), class_="panel")
    right = panel.x + _PANEL[0] - _RIGHT
    bottom = panel.y + _PANEL[1] - _BOTTOM
    first = panel.runs[0][0]
    for value in ticks(*panel.range, about=5):
        _, y = panel.place(first, value)
        yield line(panel.x + _LEFT, y, right, y, class_="grid")
        yield text(panel.x + _LEFT - 6, y + 4, number(value), anchor="end")
    yield line(panel.x + _LEFT, bottom, right, bottom)
    places = [panel.place(run, value) for run, value in panel.runs]
    yield element(
        "polyline",
        points=" ".join(f"{x:.1f},{y:.1f}" for x, y in places),
        class_="curve",
    )
    every = -(-len(places) // 10)
    for index, ((run, _), (x, y)) in enumerate(zip(panel.runs, places, strict=True)):
        yield element("circle", cx=x, cy=y, r=3.5, class_="mark")
        if run.chosen:
            yield element("circle", cx=x, cy=y, r=8.0, class_="ring")
        if index % every == 0:
            yield text(x, bottom + 16, str(run.n_clusters), anchor="middle")
