"""Cells of the papers' tables: the paper's figure, ours, and why they differ.

A cell is *near* if our mean over draws is within two spreads of what the paper prints,
plus half a unit of its last digit. The spread is the larger one of ours over the draws
and the paper's own, if it prints one. A cell that is further away names a cause: a
sentence, and the quantity of the cell that shows it, which must be near. If the data are
not published, no cell can show the cause, and the sentence stands alone. A cell that is
further away without a cause is *beyond*: two spreads leave out 5 % by chance, and the page
names the papers with more. Cells without a figure of the paper are context, and so are
those of an option that the paper does not name, which only show causes.

The folder ``printed`` beside this file has the figures that papers print: a CSV file for
each module of tables, whose lines name cells as the module does.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import MissingDataError, load
from clustering_protocols import simulation
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.terms.terms import Layout

Labels = NDArray[np.int64]
Matrix = NDArray[np.float64]

MOST_BEYOND = 0.05
COLUMNS = (
    *("table", "set", "quantity", "paper", "paper_spread", "ours", "spread"),
    *("draws", "first", "verdict", "cause", "shown_by"),
)


class Cause(NamedTuple):
    """Why a cell differs, and the quantity of the cell of the same set that shows it.

    otherwise: what is stated if that cell is not near either.
    """

    sentence: str
    shown_by: str = ""
    otherwise: str = ""


@dataclass(frozen=True)
class Cell:
    """A figure of a paper beside ours."""

    table: str
    set: str
    quantity: str
    paper: float | None
    draws: Sequence[float] | NDArray[np.float64]
    paper_spread: float = 0.0
    digits: int = 2
    cause: Cause | None = None
    fixed_spread: float | None = None
    """The spread, if the draws do not show it, as with resampled trials."""
    is_option: bool = False
    """Whether it is another way to get a figure of the paper that has a cell already."""

    @property
    def mean(self) -> float:
        """Return the mean over the draws."""
        return float(np.mean(self.draws))

    @property
    def spread(self) -> float:
        """Return the standard deviation over the draws."""
        if self.fixed_spread is not None:
            return self.fixed_spread
        return float(np.std(self.draws))

    @property
    def near(self) -> bool:
        """Return whether ours is within two spreads of the paper."""
        if self.paper is None:
            return True
        allowed = 2 * max(self.spread, self.paper_spread) + 0.5 * 10.0**-self.digits
        return abs(self.mean - self.paper) <= allowed + 1e-9


Row = dict[str, str]


def printed(part: str) -> Callable[..., Cell]:
    """Return a function that makes cells, each beside the figure that the paper prints.

    part: names the file of figures.
    """
    lines = read(Path(__file__).parent / "printed" / f"{part}.csv")
    figures = {(line["table"], line["set"], line["quantity"]): line for line in lines}

    def cell(table: str, name: str, quantity: str, draws: Any, **more: Any) -> Cell:
        line = figures.get((table, name, quantity))
        if line is None:
            return Cell(table, name, quantity, None, draws, **more)
        more["paper_spread"] = float(line["paper_spread"] or 0)
        more["digits"] = int(line["digits"])
        return Cell(table, name, quantity, float(line["paper"]), draws, **more)

    return cell


def has_too_many_outliers(lines: Sequence[Row]) -> bool:
    """Return whether more cells are beyond two spreads than chance explains."""
    verdicts = [line["verdict"] for line in lines if line["verdict"] != "context"]
    return verdicts.count("beyond") > MOST_BEYOND * len(verdicts)


def rows(cells: Iterable[Cell]) -> list[Row]:
    """Return the lines of a CSV file: each cell with its verdict (see the module)."""
    cells = list(cells)
    known = {(cell.set, cell.quantity): cell for cell in cells}

    def judge(cell: Cell) -> tuple[str, str, str]:
        """Return the verdict, the cause and the cell that shows it."""
        if cell.paper is None or cell.is_option:
            return "context", "", ""
        if cell.near:
            return "near", "", ""
        cause = cell.cause or Cause("")
        shown_by = known.get((cell.set, cause.shown_by))
        if shown_by is not None and shown_by.near:
            return "shown", cause.sentence, cause.shown_by
        stated = cause.otherwise if cause.shown_by else cause.sentence
        return ("stated" if stated else "beyond"), stated, ""

    def line(cell: Cell) -> Row:
        values = (
            *(cell.table, cell.set, cell.quantity),
            "" if cell.paper is None else f"{cell.paper:.{cell.digits}f}",
            f"{cell.paper_spread:.3f}" if cell.paper_spread else "",
            *(f"{cell.mean:.4g}", f"{cell.spread:.2g}", str(len(cell.draws))),
            "" if cell.fixed_spread is not None else f"{cell.draws[0]:.4g}",
            *judge(cell),
        )
        return dict(zip(COLUMNS, values, strict=True))

    return [line(cell) for cell in cells]


def write(lines: Sequence[Row], path: Path) -> None:
    """Write the lines as CSV."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, lines[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


def read(path: Path) -> list[Row]:
    """Return the lines of a CSV file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def split_columns(
    X: Matrix, groups: Sequence[Labels]
) -> tuple[Layout, dict[str, MatrixSource]]:
    """Return a layout with a party per group of column numbers, and their tables."""
    layout = Layout.lattice(1, len(groups))
    ids = simulation.number_rows(len(X))
    data = {
        slot: MatrixSource(X[:, own], ids=ids)
        for slot, own in zip(layout.names, groups, strict=True)
    }
    return layout, data


def labels_of(
    run: simulation.SimulationResult, parts: simulation.Split, n_rows: int
) -> Labels:
    """Return the labels of all rows of a table that was split."""
    labels = np.empty(n_rows, dtype=np.int64)
    for slot, rows in parts.held.items():
        labels[rows] = run.outcomes[slot].labels
    return labels


def at_hand(names: Iterable[str]) -> Iterator[str]:
    """Yield the names of the sets that are on this machine; say which are not."""
    for name in names:
        try:
            load(name)
        except MissingDataError as missing:
            print(f"{name} is left out. {missing}", file=sys.stderr, flush=True)
        else:
            yield name
