"""The pictures of docs/evidence.md, as SVG without dates, the same for the same figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from benchmarks.evidence_fidelity import LAYOUTS
from benchmarks.evidence_page import PICTURES
from coterie_pages.formatting import number
from coterie_pages.svg import element, line, picture, standalone, text, ticks

_WIDTH, _LEFT, _RIGHT, _STRIP, _FOOT = 760.0, 290.0, 16.0, 26.0, 46.0

Row = Mapping[str, Any]


def draw(measured: Mapping[str, Any], folder: Path) -> None:
    """Write all pictures."""
    rows = [row for row in measured["fidelity"] if "mean" in row]
    for partitioning in LAYOUTS:
        split = [r for r in rows if r["partitioning"] == partitioning]
        path = folder / PICTURES[partitioning]
        path.write_text(standalone(_fidelity(split, partitioning)))
    (folder / PICTURES["bytes"]).write_text(standalone(_bytes(rows)))


def _by_way(rows: Sequence[Row], key: Any) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


class _Scale(NamedTuple):
    """From values to places, along their logarithms if they are."""

    low: float
    high: float
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Return where a value lies, from left to right."""
        low, high, at = self.low, self.high, value
        if self.logarithmic:
            low, high, at = np.log10([low, high, value])
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * float((at - low) / (high - low))

    def ticks(self) -> list[float]:
        """Return round values; powers of ten along logarithms."""
        if not self.logarithmic:
            return ticks(self.low, self.high, about=6)
        ends = np.log10([self.low, self.high])
        return [10.0**n for n in range(int(np.ceil(ends[0])), int(ends[1]) + 1)]


def _strips(
    title: str, groups: Mapping[str, Sequence[float]], scale: _Scale, label: str
) -> Markup:
    """Return a line per group with a dot per value and a bar at the mean."""
    bottom = _STRIP * len(groups)
    parts = [part for value in scale.ticks() for part in _tick(scale, value, bottom)]
    for number_, (name, values) in enumerate(groups.items()):
        middle = _STRIP * (number_ + 0.5)
        parts.append(text(_LEFT - 10, middle + 4, name, anchor="end"))
        spread = np.linspace(-0.18, 0.18, len(values)) if len(values) > 1 else [0.0]
        parts += [
            element(
                "circle",
                cx=scale.place(value),
                cy=middle + _STRIP * float(off),
                r=3.0,
                class_="point c0",
            )
            for value, off in zip(values, spread, strict=True)
        ]
        mean = scale.place(float(np.mean(values)))
        parts.append(line(mean, middle - 8, mean, middle + 8, class_="ring"))
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(text(middle, bottom + 38, label, anchor="middle"))
    told = f"{len(groups)} lines of dots; the table on the page has the values."
    return picture("strips", title, told, (_WIDTH, bottom + _FOOT), parts)


def _tick(scale: _Scale, value: float, bottom: float) -> Iterator[Markup]:
    x = scale.place(value)
    yield line(x, 0.0, x, bottom, class_="grid")
    yield text(x, bottom + 18, number(value), anchor="middle")


def _fidelity(rows: Sequence[Row], partitioning: str) -> Markup:
    telling = [row for row in rows if row["clusters"] > 1]
    groups = _by_way(telling, lambda row: f"{row['protocol']} {row['way']}")
    values = {name: [r["mean"] for r in each] for name, each in groups.items()}
    low = min(-0.02, *(value for each in values.values() for value in each))
    label = "fidelity: one dot per set, the bar is their mean"
    return _strips(f"Fidelity, {partitioning}", values, _Scale(low, 1.03), label)


def _bytes(rows: Sequence[Row]) -> Markup:
    groups = _by_way(rows, lambda r: f"{r['protocol']} {r['way']}, {r['partitioning']}")
    values = {
        name: [r["sent_bytes"] / (8 * r["rows"] * r["features"]) for r in each]
        for name, each in groups.items()
    }
    every = [value for each in values.values() for value in each]
    scale = _Scale(min(every) / 1.3, max(every) * 1.3, logarithmic=True)
    label = "bytes of the busiest party ÷ bytes of the whole table: dots are sets"
    return _strips("Bytes of the busiest party", values, scale, label)
