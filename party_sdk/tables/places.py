"""Where a row stands: the line of a text file, or the row of another table."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from party_sdk.tables.decoding import FileKind, opened


class Places(Protocol):
    """Says where rows stand that are counted from 0."""

    @property
    def word(self) -> str:
        """Return what is counted: lines or rows."""
        ...

    def of(self, rows: Sequence[int]) -> list[int]:
        """Return the place of each row; rows are ascending."""
        ...


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that are counted from 1, or that have numbers of their own, as in a sheet."""

    numbers: Sequence[int] | None = None
    word: str = "row"

    def of(self, rows: Sequence[int]) -> list[int]:
        """Return the number of each row."""
        if self.numbers is None:
            return [row + 1 for row in rows]
        return [self.numbers[row] for row in rows]


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a text file: blank ones count, and a quoted cell may take several."""

    path: Path
    kind: FileKind
    encoding: str
    quote: str
    skip: int
    one_column: bool
    word: str = "line"

    def of(self, rows: Sequence[int]) -> list[int]:
        """Return the line on which each row begins."""
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

    def _records(self) -> Iterator[int]:
        quotes, begin, named = 0, 0, False
        with io.TextIOWrapper(
            opened(self.path, self.kind), self.encoding, errors="replace", newline=None
        ) as text:
            for number, line in enumerate(text, 1):
                if number <= self.skip:
                    continue
                if not begin:
                    if line == "\n" and not (self.one_column and named):
                        continue
                    begin, named = number, True
                quotes += line.count(self.quote)
                if quotes % 2 == 0:
                    yield begin
                    begin = 0
