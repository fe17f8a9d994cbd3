"""The pictures of docs/evidence.md, as SVG without dates, the same for the same figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from benchmarks.evidence_fidelity import LAYOUTS
from benchmarks.evidence_page import PICTURES

mpl.rcParams["svg.hashsalt"] = "evidence"
mpl.rcParams["svg.fonttype"] = "none"
_DOT = "#1f5a92"
_MEAN = "#c44e1a"

Row = Mapping[str, Any]


def draw(measured: Mapping[str, Any], folder: Path) -> None:
    """Write all pictures."""
    rows = [row for row in measured["fidelity"] if "mean" in row]
    for partitioning in LAYOUTS:
        split = [r for r in rows if r["partitioning"] == partitioning]
        _save(_fidelity(split), folder / PICTURES[partitioning])
    _save(_bytes(rows), folder / PICTURES["bytes"])


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    lines = path.read_text().splitlines()  # matplotlib leaves spaces at ends of lines
    path.write_text("\n".join(line.rstrip() for line in lines) + "\n")


def _by_way(rows: Sequence[Row], key: Any) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def _strips(groups: Mapping[str, Sequence[float]], label: str) -> Figure:
    """Return a line per group with a dot per value and a bar at the mean."""
    figure = Figure(figsize=(7.5, 0.9 + 0.34 * len(groups)), layout="constrained")
    axes = figure.subplots()
    for place, values in enumerate(groups.values()):
        spread = np.linspace(-0.18, 0.18, len(values)) if len(values) > 1 else [0.0]
        axes.plot(values, place + np.asarray(spread), "o", ms=4, alpha=0.6, color=_DOT)
        mean = float(np.mean(values))
        axes.plot([mean, mean], [place - 0.32, place + 0.32], lw=2, color=_MEAN)
    axes.set_yticks(range(len(groups)), list(groups))
    axes.invert_yaxis()
    axes.set_xlabel(label)
    axes.grid(axis="x", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _fidelity(rows: Sequence[Row]) -> Figure:
    telling = [row for row in rows if row["clusters"] > 1]
    groups = _by_way(telling, lambda row: f"{row['protocol']} {row['way']}")
    values = {name: [r["mean"] for r in each] for name, each in groups.items()}
    figure = _strips(values, "fidelity: one dot per set, the bar is their mean")
    figure.axes[0].set_xlim(-0.02, 1.03)
    return figure


def _bytes(rows: Sequence[Row]) -> Figure:
    groups = _by_way(rows, lambda r: f"{r['protocol']} {r['way']}, {r['partitioning']}")
    values = {
        name: [r["sent_bytes"] / (8 * r["rows"] * r["features"]) for r in each]
        for name, each in groups.items()
    }
    figure = _strips(
        values, "bytes of the busiest party ÷ bytes of the whole table: dots are sets"
    )
    figure.axes[0].set_xscale("log")
    return figure
