"""A table before its cells are numbers: what every kind of file or frame offers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import pyarrow as pa

from clustering_protocols.records.arrays import FloatArray
from party_sdk.tables.cells import CellForm, Kind
from party_sdk.tables.columns import Column
from party_sdk.tables.names import Names
from party_sdk.tables.report import Findings
from party_sdk.tables.row_places import Places

Cells: TypeAlias = Sequence[pa.Array]


class Batch(NamedTuple):
    """Some rows of a table.

    cells: of the columns that were asked for.
    names: of the columns that name the rows.
    original: float64 arrays of the columns whose cells a mapping changes, in their
        order: numbers that stand for the cells as the table has them.
    """

    cells: Cells
    names: Cells
    original: Sequence[FloatArray] = ()


class Source(Protocol):
    """A table that can be read: its columns, and batches of some of them."""

    @property
    def names(self) -> Names:
        """Return the names of all columns."""
        ...

    @property
    def kinds(self) -> Sequence[Kind]:
        """Return what each column holds, as far as it shows."""
        ...

    @property
    def forms(self) -> Sequence[CellForm]:
        """Return how the texts of each column are written."""
        ...

    @property
    def places(self) -> Places:
        """Return what says where a row stands."""
        ...

    @property
    def warnings(self) -> Sequence[str]:
        """Return what was guessed, and may be wrong."""
        ...

    @property
    def format_description(self) -> dict[str, Any]:
        """Return how the table is written, for people."""
        ...

    def batches(
        self, columns: Sequence[Column], naming: Sequence[str]
    ) -> Iterator[Batch]:
        """Yield the cells of columns, and those that name the rows, in order.

        They are as the table has them: typed, or texts of the column's form. Columns of
        numbers are watched for signs with two readings, which :meth:`tell` names.
        """
        ...

    def texts(self, columns: Sequence[Column]) -> Iterator[Cells]:
        """Yield the cells of columns as the table has them, whatever they hold."""
        ...

    def read_places(self) -> Places | None:
        """Return where the rows stand that the last pass yielded.

        None where loose quotation marks hide it.
        """
        ...

    def rejected_lines(self) -> frozenset[int]:
        """Return the lines that cannot be cut into cells: all of the table is read."""
        ...

    def normalise(self, column: Column, texts: pa.Array) -> pa.Array:
        """Return texts of the table as the cells that a column is read from."""
        ...

    def tell(self, findings: Findings) -> None:
        """Add what was wrong in the last pass: with rows that were left out, with signs."""
        ...
