"""A table before its cells are numbers: where rows stand, and what every kind offers."""

from __future__ import annotations

import gzip
import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from clustering_protocols.records.arrays import FloatArray
from party_sdk.tables.cells import CellForm, Kind
from party_sdk.tables.columns import Column
from party_sdk.tables.files import FileKind
from party_sdk.tables.read_options import Names
from party_sdk.tables.report import Findings

_PIECE: Final = 1 << 20
"""Characters that are held of a line: one may be the whole file."""


@dataclass(frozen=True, slots=True)
class NumberedRows:
    """Rows that are counted, as in a sheet.

    first: what the first row is called.
    empty: the numbers, ascending, of rows that hold nothing and were left out.
    """

    first: int = 1
    empty: Sequence[int] = ()
    word: str = "row"

    def of(self, rows: Sequence[int]) -> list[int]:
        """Return the number of each row that is counted from 0; rows are ascending."""
        found, before = [], 0
        for row in rows:
            while before < len(self.empty) and (
                self.empty[before] <= self.first + row + before
            ):
                before += 1
            found.append(self.first + row + before)
        return found

    def find(self, numbers: Sequence[int]) -> dict[int, int]:
        """Return which rows, from 0, have these numbers; empty rows are none."""
        empty, absent = np.array(self.empty, dtype=np.int64), set(self.empty)
        return {
            number: number - self.first - int(np.searchsorted(empty, number))
            for number in numbers
            if number >= self.first and number not in absent
        }


@dataclass(frozen=True, slots=True)
class FileLines:
    """Lines of a text file: blank ones count, and a quoted cell may take several.

    whole: lines that are a row each, whatever quotation marks they hold.
    """

    path: Path
    kind: FileKind
    encoding: str
    quote: str
    skip: int
    one_column: bool
    word: str = "line"
    whole: tuple[int, ...] = ()

    def of(self, rows: Sequence[int]) -> list[int]:
        """Return the line on which each row begins; rows are ascending, from 0."""
        found: list[int] = []
        wanted = iter(rows)
        row = next(wanted, None)
        for number, begin in enumerate(self._records(), -1):  # -1: the names
            while row == number:
                found.append(begin)
                row = next(wanted, None)
            if row is None:
                break
        return found

    def find(self, lines: Sequence[int]) -> dict[int, int]:
        """Return which rows, from 0, begin on these lines."""
        wanted, last = set(lines), max(lines, default=0)
        found: dict[int, int] = {}
        for row, begin in enumerate(self._records(), -1):
            if begin > last:
                break
            if begin in wanted and row >= 0:
                found[begin] = row
        return found

    def count(self) -> int:
        """Return how many rows the file has, as far as quotation marks show."""
        return sum(1 for _ in self._records()) - 1

    def swallowing(self, is_row: Callable[[str], bool]) -> Iterator[tuple[int, int]]:
        """Yield first and last line of each row that holds two lines or more like rows.

        Two stray quotation marks make one cell of all that lies between.
        """
        lines: list[str] = []
        for begin, end in self._spans(lines.append):
            if sum(map(is_row, lines)) > 1:
                yield begin, end
            lines.clear()

    def _records(self) -> Iterator[int]:
        return (begin for begin, _ in self._spans())

    def _spans(
        self, see: Callable[[str], None] | None = None
    ) -> Iterator[tuple[int, int]]:
        """Yield the first and the last line of each row, the names' too.

        see: called with the lines of rows that take several.
        """
        quotes, begin, named, first = 0, 0, False, ""
        opening: Any = gzip.open if self.kind == "gzip" else open
        with (
            opening(self.path, "rb") as file,
            io.TextIOWrapper(
                file, self.encoding, errors="replace", newline=None
            ) as text,
        ):
            number = 1
            for piece in iter(lambda: text.readline(_PIECE), ""):
                is_line, line = piece.endswith("\n"), number
                number += is_line
                if line <= self.skip:
                    continue
                if not begin:
                    if piece == "\n" and not (self.one_column and named):
                        continue
                    begin, named, first = line, True, piece
                elif see is not None:
                    if first:
                        see(first)
                    see(piece)
                    first = ""
                if line not in self.whole:
                    quotes += piece.count(self.quote)
                if is_line and quotes % 2 == 0:
                    yield begin, line
                    begin = 0
            if begin and quotes % 2 == 0:
                yield begin, number


@dataclass(frozen=True, slots=True)
class RemainingRows:
    """Rows that are left of a table of which some were left out.

    places: of the rows of the whole table.
    omitted: those that were left out, ascending, from 0.
    """

    places: FileLines | NumberedRows
    omitted: Sequence[int]

    @property
    def word(self) -> str:
        """Return what is counted."""
        return self.places.word

    def of(self, rows: Sequence[int]) -> list[int]:
        """Return where rows stand that are counted from 0; rows are ascending."""
        before = np.array(self.omitted, dtype=np.int64)
        before -= np.arange(len(before))
        own = np.array(rows, dtype=np.int64)
        return self.places.of(
            (own + np.searchsorted(before, own, side="right")).tolist()
        )


WholePlaces: TypeAlias = FileLines | NumberedRows
Places: TypeAlias = WholePlaces | RemainingRows
"""Says where rows stand that are counted from 0."""


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


class Source(ABC):
    """A table that can be read: its columns, and batches of some of them.

    names, kinds: of all columns, and what each holds, as far as it shows.
    forms: how the texts of each column are written.
    format_description: how the table is written, for people.
    """

    names: Names
    kinds: Sequence[Kind]
    forms: Sequence[CellForm]

    @property
    @abstractmethod
    def places(self) -> Places:
        """Return what says where a row stands."""

    @property
    @abstractmethod
    def warnings(self) -> Sequence[str]:
        """Return what was guessed, and may be wrong."""

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
        numbers are watched for signs with two readings, which :meth:`tell` names.
        """

    @abstractmethod
    def texts(self, columns: Sequence[Column]) -> Iterator[Cells]:
        """Yield the cells of columns as the table has them, whatever they hold."""

    @abstractmethod
    def tell(self, findings: Findings) -> None:
        """Add what was wrong in the last pass: with rows that were left out, with signs."""

    def read_places(self) -> Places | None:
        """Return where the rows stand that the last pass yielded.

        None where loose quotation marks hide it.
        """
        return self.places

    def rejected_lines(self) -> frozenset[int]:
        """Return the lines that cannot be cut into cells: all of the table is read."""
        return frozenset()

    def normalise(self, column: Column, texts: pa.Array) -> pa.Array:
        """Return texts of the table as the cells that a column is read from."""
        del column
        return texts
