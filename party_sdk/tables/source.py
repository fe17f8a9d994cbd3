"""The interface of every kind of table, before its cells are converted to numbers."""

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

    word: what numbers count: ``line`` for a text file, ``row`` for other tables.
    find: returns ``numbers``; called when they are first needed.
    n_omitted: number of rows of the table that were left out.
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
    unmapped: the cells before a mapping changed them; None without a mapping.
    original: one float64 array (n,) for each column whose cells a mapping changes, in
        order; its numbers stand for the cells before the change.
    """

    cells: Cells
    names: Cells
    unmapped: Cells | None = None
    original: Sequence[FloatArray] = ()


class Source(ABC):
    """A table that can be read: its columns, and batches of some of them.

    names, kinds: of all columns; kinds as detected from the table.
    forms: how each column writes numbers and dates.
    """

    names: Names
    kinds: Sequence[Kind]
    forms: Sequence[CellForm]

    @property
    @abstractmethod
    def locations(self) -> RowLocations:
        """Return the line or row numbers of the table."""

    @property
    @abstractmethod
    def warnings(self) -> Sequence[str]:
        """Return warnings about formats that were guessed."""

    @property
    def format_description(self) -> dict[str, Any]:
        """Return how the table is written, for people."""
        return {}

    @abstractmethod
    def batches(
        self, columns: Sequence[Column], naming: Sequence[str]
    ) -> Iterator[Batch]:
        """Yield the cells of ``columns`` and of the columns in ``naming``, in row order.

        Cells are typed, or texts in the form of their column. Ambiguous numbers are
        recorded for :meth:`add_findings`.
        """

    @abstractmethod
    def add_findings(self, findings: Findings) -> None:
        """Add the problems of the last pass, such as rejected rows."""

    def read_locations(self) -> RowLocations | None:
        """Return the line or row numbers of the last pass.

        None if stray quotation marks hide where rows begin.
        """
        return self.locations

    def reject_lines(self, lines: Collection[int]) -> frozenset[int]:
        """Return the given lines that cannot be split into cells.

        Reads the whole table; afterwards :attr:`locations` counts each such line as a row.
        """
        del lines
        return frozenset()
