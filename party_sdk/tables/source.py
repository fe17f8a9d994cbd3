"""The interface through which any kind of table is read, before cells become numbers."""

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
    """The line or row numbers of a table's rows, for use in messages.

    word: what the numbers count: ``line`` in a text file, ``row`` in other tables.
    find: computes ``numbers`` when they are first needed.
    n_omitted: number of the table's rows that were left out.
    """

    def __init__(
        self, word: str, find: Callable[[], IntArray], n_omitted: int = 0
    ) -> None:
        self.word, self.n_omitted, self._find = word, n_omitted, find

    @cached_property
    def numbers(self) -> IntArray:
        """Return the line or row number of each row, int64 (n,), counted from 1."""
        return self._find()

    def numbers_of_rows(self, rows: Iterable[int]) -> list[int]:
        """Return the line or row numbers of the rows with these indices."""
        numbers: list[int] = self.numbers[list(rows)].tolist()
        return numbers

    def without_rows(self, rows: IntArray) -> RowLocations:
        """Return a copy without the rows with these indices."""
        if not len(rows):
            return self
        return RowLocations(
            self.word,
            lambda: np.delete(self.numbers, rows),
            self.n_omitted + len(rows),
        )

    def without_numbers(self, numbers: Collection[int]) -> RowLocations:
        """Return a copy without the rows with these line or row numbers."""
        if not numbers:
            return self
        is_left_out = np.isin(self.numbers, list(numbers))
        return self.without_rows(np.flatnonzero(is_left_out))


Cells: TypeAlias = Sequence[pa.Array]


class Batch(NamedTuple):
    """A batch of a table's rows.

    cells: the cells of the requested columns.
    names: the cells of the columns that name the rows.
    unmapped: the requested cells before a mapping changed them; None without a mapping.
    original: for each column that a mapping changes, numbers float64 (n,) that stand
        for the cells before the change.
    """

    cells: Cells
    names: Cells
    unmapped: Cells | None = None
    original: Sequence[FloatArray] = ()


class Source(ABC):
    """A table of any kind, whose columns can be read in batches of rows.

    names, kinds: the names of all columns, and the kinds of value detected in them.
    forms: how numbers and dates are written in each column.
    """

    names: Names
    kinds: Sequence[Kind]
    forms: Sequence[CellForm]

    @property
    @abstractmethod
    def row_locations(self) -> RowLocations:
        """Return the line or row numbers of the table's rows."""

    @property
    @abstractmethod
    def warnings(self) -> Sequence[str]:
        """Return warnings about formats that had to be guessed."""

    @property
    def format_description(self) -> dict[str, Any]:
        """Return the settings with which the table is read, for people to check."""
        return {}

    @abstractmethod
    def batches(
        self, columns: Sequence[Column], naming: Sequence[str]
    ) -> Iterator[Batch]:
        """Yield the cells of ``columns`` and of the columns in ``naming`` by rows.

        Cells are either typed, or texts written in the form of their column. Ambiguous
        numbers are remembered and reported by :meth:`add_findings`.
        """

    @abstractmethod
    def add_findings(self, findings: Findings) -> None:
        """Add the problems found by the last pass over the rows, such as bad lines."""

    def last_row_locations(self) -> RowLocations | None:
        """Return the line or row numbers of the rows that the last pass read.

        Returns None if stray quotation marks make it uncertain where rows begin.
        """
        return self.row_locations

    def reject_lines(self, lines: Collection[int]) -> frozenset[int]:
        """Return those of the given lines that cannot be split into cells.

        Reads the whole table; afterwards each such line counts as a row of its own.
        """
        del lines
        return frozenset()
