"""The pictures of docs/evidence.md, as SVG without dates, the same for the same figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from benchmarks.evidence_page import PICTURES, SPLITS, Measured
from benchmarks.papers.cells import Row
from coterie_pages.formatting import format_number
from coterie_pages.svg import element, line, picture, round_ticks, standalone, text

_WIDTH, _LEFT, _RIGHT, _STRIP, _FOOT = 800.0, 360.0, 16.0, 22.0, 46.0


def draw(measured: Measured) -> dict[str, str]:
    """Return the text of each picture by its name."""
    rows = [row for row in measured["fidelity"] if not row["refused"]]
    several = [row for row in rows if int(row["clusters"]) > 1]
    compared = [row for row in several if row["ratio"]]
    fidelities = _by_way(several, lambda row: float(row["mean"]))
    ratios = _by_way(compared, lambda row: float(row["ratio"]))
    shares = _by_way(rows, _share_of_bytes, with_rounds=True)
    drawn = {
        "fidelity": _strips("fidelity", fidelities, "fidelity: a dot is a set"),
        "objective": _strips(
            "objective",
            ratios,
            "objective over pooled: a dot is the median split of a set",
            logarithmic=True,
        ),
        "bytes": _strips(
            "bytes",
            shares,
            "bytes of the busiest party over bytes of the table: a dot is a set",
            logarithmic=True,
        ),
    }
    if "peers" in measured:
        ran = [row for row in measured["peers"] if row["bytes"] not in {"–", "0"}]
        of_peers = {
            f"{row['peer']}, {row['seconds']} s": [float(row["bytes"])] for row in ran
        }
        label = "bytes on the wire; beside the name the seconds that it took"
        drawn["peers"] = _strips("peers", of_peers, label, logarithmic=True)
    return {name: standalone(markup) for name, markup in drawn.items()}


def _share_of_bytes(row: Row) -> float:
    return int(row["sent_bytes"]) / (8 * int(row["rows"]) * int(row["features"]))


def _by_way(
    rows: Sequence[Row], value: Callable[[Row], float], *, with_rounds: bool = False
) -> dict[str, list[float]]:
    ways: dict[str, list[Row]] = {}
    for row in rows:
        split = SPLITS[row["partitioning"]]
        ways.setdefault(f"{row['protocol']} {row['way']}, {split}", []).append(row)
    labels = {
        way: f", {median(int(row['rounds']) for row in own):.0f} rounds"
        for way, own in ways.items()
    }
    return {
        way + (labels[way] if with_rounds else ""): [value(row) for row in own]
        for way, own in ways.items()
    }


class _Scale(NamedTuple):
    """A map from values to places, along logarithms if `logarithmic`."""

    low: float
    high: float
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Return the horizontal position of a value."""
        low, high, at = self.low, self.high, value
        if self.logarithmic:
            low, high, at = np.log10([low, high, value])
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * float((at - low) / (high - low))

    def ticks(self) -> list[float]:
        """Return round values: powers of ten along logarithms of a decade or more."""
        ends = np.log10([self.low, self.high]) if self.logarithmic else np.zeros(2)
        if ends[1] - ends[0] < 1:
            return round_ticks(self.low, self.high, count=6)
        return [10.0**n for n in range(int(np.ceil(ends[0])), int(ends[1]) + 1)]


def _strips(
    name: str,
    groups: Mapping[str, Sequence[float]],
    label: str,
    *,
    logarithmic: bool = False,
) -> Markup:
    """Return a picture: a strip per group with a dot per value, a bar at the mean."""
    values = [value for group in groups.values() for value in group]
    low, high = min(values), max(values)
    margin = 0.03 * (high - low)
    scale = _Scale(low - margin, high + margin)
    if logarithmic:
        scale = _Scale(low / 1.1, high * 1.1, logarithmic=True)
    bottom = _STRIP * len(groups)
    parts = [part for value in scale.ticks() for part in _tick(scale, value, bottom)]
    for place, (title, group) in enumerate(groups.items()):
        middle = _STRIP * (place + 0.5)
        parts.append(text(_LEFT - 10, middle + 4, title, anchor="end"))
        offsets = np.linspace(-0.18, 0.18, len(group)) if len(group) > 1 else [0.0]
        parts += [
            element(
                "circle",
                cx=scale.place(value),
                cy=middle + _STRIP * float(offset),
                r=3.0,
                class_="point c0",
            )
            for value, offset in zip(group, offsets, strict=True)
        ]
        mean = scale.place(float(np.mean(group)))
        parts.append(line(mean, middle - 8, mean, middle + 8, class_="ring"))
    centre = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(text(centre, bottom + 38, label, anchor="middle"))
    told = f"{len(groups)} lines of dots; a file beside the page has the values."
    return picture(name, PICTURES[name], told, (_WIDTH, bottom + _FOOT), parts)


def _tick(scale: _Scale, value: float, bottom: float) -> Iterator[Markup]:
    x = scale.place(value)
    yield line(x, 0.0, x, bottom, class_="grid")
    yield text(x, bottom + 18, format_number(value), anchor="middle")
