"""Where a row stands: the line of a text file, or the row of another table."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from party_sdk.tables.files import FileKind

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
