"""A table before its cells are numbers: the interface of every kind of table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from clustering_protocols.records.arrays import FloatArray, IntArray
from party_sdk.tables.cells import CellForm, Kind
from party_sdk.tables.columns import Column
from party_sdk.tables.read_options import Names
from party_sdk.tables.report import Findings


class RowLocations:
    """The line or row numbers of a table, as error messages give them.

    word: the unit of numbers: ``line`` of a text file, ``row`` of another table.
    n_omitted: how many rows of the table are none of these.
    """

    def __init__(
        self, word: str, find: Callable[[], IntArray], n_omitted: int = 0
    ) -> None:
        self.word, self.n_omitted, self._find = word, n_omitted, find

    @cached_property
    def numbers(self) -> IntArray:
        """Return the number (n,) of each row, ascending, from 1."""
        return self._find()

    def lookup(self, rows: Iterable[int]) -> list[int]:
        """Return the numbers of rows given by index."""
        numbers: list[int] = self.numbers[list(rows)].tolist()
        return numbers

    def omit(self, rows: IntArray) -> RowLocations:
        """Return the locations without some rows, given by index."""
        if not len(rows):
            return self
        return RowLocations(
            self.word,
            lambda: np.delete(self.numbers, rows),
            self.n_omitted + len(rows),
        )

    def omit_numbers(self, numbers: Collection[int]) -> RowLocations:
        """Return the locations without some row numbers."""
        if not numbers:
            return self
        is_left_out = np.isin(self.numbers, list(numbers))
        return self.omit(np.flatnonzero(is_left_out))


Cells: TypeAlias = Sequence[pa.Array]


class Batch(NamedTuple):
    """Some rows of a table.

    cells: of the requested columns.
    names: of the columns that name the rows.
    unmapped: the cells as the table has them, where a mapping changed some.
    original: float64 arrays of the columns whose cells a mapping changes, in their
        order: numbers that stand for the cells as the table has them.
    """

    cells: Cells
    names: Cells
    unmapped: Cells | None = None
    original: Sequence[FloatArray] = ()


class Source(ABC):
    """A table that can be read: its columns, and batches of some of them.

    names, kinds: of all columns; kinds as far as the table itself shows them.
    forms: how the texts of each column are written.
    format_description: how the table is written, for people.
    """

    names: Names
    kinds: Sequence[Kind]
    forms: Sequence[CellForm]

    @property
    @abstractmethod
    def locations(self) -> RowLocations:
        """Return the row numbers of the table."""

    @property
    @abstractmethod
    def warnings(self) -> Sequence[str]:
        """Return warnings about guesses."""

    @property
    def format_description(self) -> dict[str, Any]:
        """Return how the table is written, for people."""
        return {}

    @abstractmethod
    def batches(
        self, columns: Sequence[Column], naming: Sequence[str]
    ) -> Iterator[Batch]:
        """Yield the cells of columns, and those that name the rows, in order.

        They are as the table has them: typed, or texts of the column's form. Columns of
        numbers are watched for signs with two readings: see :meth:`add_findings`.
        """

    @abstractmethod
    def add_findings(self, findings: Findings) -> None:
        """Add the problems of the last pass: rejected rows, ambiguous numbers."""

    def read_locations(self) -> RowLocations | None:
        """Return the row numbers of the last pass.

        None where loose quotation marks hide it.
        """
        return self.locations

    def reject_lines(self, lines: Collection[int]) -> frozenset[int]:
        """Read the whole table; return those of the lines that cannot be split into cells.

        From then on each of them is a row of :attr:`locations`.
        """
        del lines
        return frozenset()
