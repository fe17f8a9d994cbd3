"""The interface through which any kind of table is read, before cells become numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import compute, types

from clustering_protocols.records.arrays import FloatArray, IntArray
from party_sdk.tables.cells import (
    DECIDING,
    THOUSANDS_LIKE,
    WHOLE,
    CellForm,
    Kind,
    describe_readings,
)
from party_sdk.tables.columns import Column
from party_sdk.tables.read_options import Names
from party_sdk.tables.report import Finding, mask_text


class RowLocations:
    """The line or row numbers of the rows that a pass over a table read, for messages.

    word: what the numbers count: ``line`` in a text file, ``row`` in other tables.
    find: computes ``numbers`` when they are first needed.
    unread: numbers of the lines that cannot be split into cells.
    n_omitted: number of the table's rows that were left out, with unread ones.
    """

    def __init__(
        self,
        word: str,
        find: Callable[[], IntArray | None],
        unread: Collection[int] = (),
        n_omitted: int = 0,
    ) -> None:
        self.word, self.unread, self._find = word, frozenset(unread), find
        self.n_omitted = n_omitted or len(self.unread)

    @cached_property
    def numbers(self) -> IntArray | None:
        """The line or row number of each row, int64 (n,), counted from 1.

        None if stray quotation marks make it uncertain where rows begin, or if the file
        has been removed meanwhile.
        """
        try:
            return self._find()
        except OSError:
            return None

    @property
    def is_certain(self) -> bool:
        """Whether the numbers are certain."""
        return self.numbers is not None

    def numbers_of_rows(self, rows: Iterable[int]) -> list[int | None]:
        """Return the numbers of the rows with these indices; None if uncertain."""
        indices = list(rows)
        if not indices or self.numbers is None:
            return [None] * len(indices)
        return [*self.numbers[indices].tolist()]

    def name_rows(self, rows: Iterable[int]) -> tuple[str, list[int]]:
        """Return ``line`` or ``row``, and the numbers of the rows with these indices.

        Rows are counted if their line numbers are uncertain.
        """
        indices = list(rows)
        if not indices or self.numbers is None:
            return "row", [index + 1 for index in indices]
        return self.word, self.numbers[indices].tolist()

    def without_rows(self, rows: IntArray) -> RowLocations:
        """Return a copy without the rows with these indices."""
        if not len(rows):
            return self
        return RowLocations(
            self.word,
            lambda: None if self.numbers is None else np.delete(self.numbers, rows),
            self.unread,
            self.n_omitted + len(rows),
        )


Cells: TypeAlias = Sequence[pa.Array]


class Batch(NamedTuple):
    """A batch of a table's rows.

    cells: the cells of the requested columns.
    names: the cells of the columns that identify the rows.
    unmapped: the requested cells before a mapping changed them; None without a mapping.
    original: for each column that a mapping changes, numbers float64 (n,) that
        represent the cells before the change.
    """

    cells: Cells
    names: Cells
    unmapped: Cells | None = None
    original: Sequence[FloatArray] = ()


def _matches(cells: pa.Array, pattern: str) -> pa.Array:
    return compute.match_substring_regex(cells, rf"^\s*(?:{pattern})\s*$")


class SignWatch:
    """Looks for ambiguous numbers in a text column: 9.370 may mean 9370 or 9.37.

    cell_form: the column's format, with the decimal sign taken from other columns.
    row: index of the first row with an ambiguous number; -1 if there is none so far.
    text: the shape of that number.
    """

    def __init__(self, cell_form: CellForm) -> None:
        self.row, self.text = -1, ""
        self._form = cell_form
        self._is_decided = self._has_short = self._has_zeros = False

    @property
    def is_open(self) -> bool:
        """Whether a number is ambiguous and no cell of the column decides its meaning."""
        return self.row >= 0 and not self._is_decided

    @property
    def has_two_readings(self) -> bool:
        """Whether a number remains ambiguous even given the other columns.

        This is so for 967 and 9.370: a program that writes 967 without a fraction would
        write 9.37 without its last zero, so the point may separate thousands.
        """
        is_decimal = self._form.table_agrees and self._form.decimal in self.text
        in_thousands = self._has_short and self._has_zeros
        return self.is_open and (in_thousands or not is_decimal)

    def add_batch(self, cells: pa.Array, begin: int) -> None:
        """Examine the next texts of the column, the first of which is in row ``begin``."""
        longest = compute.max(compute.binary_length(cells)).as_py() or 0
        # shorter texts have neither four digits nor a thousands separator
        if self._is_decided or longest < len("1000"):
            self._has_short = self._has_short or longest > 0
            return
        is_deciding = _matches(cells, DECIDING)
        if not self._form.has_numbers:
            codes = _matches(cells, "-?(9+|8+|7+)")
            is_whole = compute.and_not(_matches(cells, WHOLE), codes)
            is_deciding = compute.or_(is_deciding, is_whole)
        self._is_decided = bool(compute.any(is_deciding).as_py())
        if self._is_decided:
            return
        self._has_short |= bool(compute.any(_matches(cells, r"-?\d{1,3}")).as_py())
        is_ambiguous = _matches(cells, THOUSANDS_LIKE)
        self._has_zeros |= bool(compute.any(_matches(cells, r".*[.,]\d\d0")).as_py())
        index = compute.index(is_ambiguous, value=True).as_py()
        if self.row < 0 <= index:
            self.row = begin + index
            self.text = mask_text(cells[index].as_py().strip())


class Source(ABC):
    """A table of any kind, whose columns can be read in batches of rows.

    names, kinds: the names of all columns, and the kinds of value detected in them.
    forms: the format of numbers and dates in each column.
    """

    names: Names
    kinds: Sequence[Kind]
    forms: Sequence[CellForm]

    @property
    @abstractmethod
    def warnings(self) -> Sequence[str]:
        """Return warnings about formats that had to be guessed."""

    @property
    @abstractmethod
    def format_description(self) -> dict[str, Any]:
        """Return the settings with which the table is read, for people to check."""

    @abstractmethod
    def batches(
        self, columns: Sequence[Column], naming: Sequence[str]
    ) -> Iterator[Batch]:
        """Yield the cells of ``columns`` and ``naming`` in batches of rows.

        Cells are either typed, or texts written in the form of their column. Ambiguous
        numbers are remembered and reported by :meth:`findings`.
        """

    @abstractmethod
    def findings(self) -> list[Finding]:
        """Return the problems found by the last pass over the rows, such as bad lines."""

    @abstractmethod
    def locations(self) -> RowLocations:
        """Return the line or row numbers of the rows that the last pass read."""


class TableSource(Source):
    """A source that reads a table itself, and looks for ambiguous numbers in its texts."""

    _format_warnings: Sequence[str] = ()
    _watches: Mapping[str, tuple[int, SignWatch]] = {}
    """The numeric columns of the last pass whose decimal sign no sample cell decided."""

    @abstractmethod
    def _read(self, positions: Sequence[int]) -> Iterable[pa.RecordBatch]:
        """Yield the columns at these positions in batches of rows."""

    def batches(
        self, columns: Sequence[Column], naming: Sequence[str]
    ) -> Iterator[Batch]:
        """Yield the cells as they are in the table."""
        names = [*(column.name for column in columns), *naming]
        positions = [self.names.position(name) for name in names]
        self._watches = {
            column.name: (index, SignWatch(form))
            for index, column in enumerate(columns)
            if column.is_numeric
            and not (form := self.forms[positions[index]]).is_decided
        }
        begin = 0
        for batch in self._read(positions):
            for index, watch in self._watches.values():
                kind = batch.column(index).type
                if types.is_string(kind) or types.is_large_string(kind):
                    watch.add_batch(batch.column(index), begin)
            begin += len(batch)
            yield Batch(batch.columns[: len(columns)], batch.columns[len(columns) :])

    @property
    def warnings(self) -> Sequence[str]:
        """Return warnings about guessed formats and ambiguous numbers."""
        open_columns = [
            f"{name!r}: all fractions have three digits, like thousands: read with the "
            "decimal sign of other columns."
            for name, (_, watch) in self._watches.items()
            if watch.is_open and not watch.has_two_readings
        ]
        return [*self._format_warnings, *open_columns]

    def _sign_findings(self) -> Iterator[Finding]:
        """Yield a finding for each column with numbers that remain ambiguous."""
        locations = self.locations()
        for name, (_, watch) in self._watches.items():
            if watch.has_two_readings:
                [line] = locations.numbers_of_rows([watch.row])
                yield Finding(
                    what=describe_readings(watch.text), line=line, column=name
                )
