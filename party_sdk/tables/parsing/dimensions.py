"""How many cells a sheet of Excel spans, before a reader makes room for all of them."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final
from zipfile import BadZipFile, ZipFile, is_zipfile

from party_sdk.tables.parsing.limits import MOST_UNPACKED, SHEET_CELL_BYTES, Limits

_PIECE: Final = 1 << 20
_LONGEST_TAG: Final = 1 << 10
_SHEET: Final = re.compile(r"xl/worksheets/[^/]+\.xml", re.IGNORECASE)
_SAID: Final = re.compile(
    rb'<(?:\w+:)?dimension [^>]*?ref="([A-Z]{1,3})(\d{1,7})(?::([A-Z]{1,3})(\d{1,7}))?"'
)
_CELL: Final = re.compile(rb'<(?:\w+:)?c\b[^>]*?\br="([A-Z]{1,3})(\d{1,7})"[^>]*?(/?)>')
"""A cell; one that ends in its tag has a format and no value."""


@dataclass(slots=True)
class _Span:
    """The least rectangle of cells that were seen."""

    top: int = 1 << 30
    left: int = 1 << 30
    bottom: int = 0
    right: int = 0

    def see(self, column: bytes, row: bytes) -> None:
        """Make room for a cell."""
        x, y = _number(column), int(row)
        self.left, self.right = min(self.left, x), max(self.right, x)
        self.top, self.bottom = min(self.top, y), max(self.bottom, y)

    @property
    def shape(self) -> tuple[int, int]:
        """Return rows and columns."""
        height, width = self.bottom - self.top + 1, self.right - self.left + 1
        return max(height, 0), max(width, 0)


def check_dimensions(path: Path, limits: Limits) -> None:
    """Refuse a workbook (xlsx) with a sheet that spans too many cells.

    What a sheet says of itself is believed if it is little: who lies meets the limit of
    memory. Otherwise, and where it says nothing, cells with values count.

    Raises InvalidData.
    """
    if limits.large or not is_zipfile(path):
        return
    # what is broken, or has a password, is refused by anyone who reads the cells
    with (
        suppress(BadZipFile, RuntimeError, EOFError, zlib.error),
        ZipFile(path) as book,
    ):
        for name in filter(_SHEET.fullmatch, book.namelist()):
            with book.open(name) as sheet:
                _check(sheet, limits)


def _check(sheet: IO[bytes], limits: Limits) -> None:
    head = sheet.read(_PIECE)
    if (said := _SAID.search(head)) is not None:
        span = _Span()
        span.see(said[1], said[2])
        span.see(said[3] or said[1], said[4] or said[2])
        rows, columns = span.shape
        if SHEET_CELL_BYTES * rows * columns <= MOST_UNPACKED:
            return
    span = _Span()
    for piece in _read_overlapping(head, sheet):
        for column, row, is_empty in _CELL.findall(piece):
            if not is_empty:
                span.see(column, row)
    rows, columns = span.shape
    limits.check_unpacked(
        SHEET_CELL_BYTES * rows * columns,
        f"A sheet of {limits.name!r} spans {rows:,} rows × {columns:,} columns: it takes",
        "Delete what stands far from the table, save the sheet as CSV",
    )


def _read_overlapping(head: bytes, sheet: IO[bytes]) -> Iterator[bytes]:
    """Yield pieces of a sheet that begin with the end of the last: no tag is cut."""
    piece = head
    while piece:
        yield piece
        more = sheet.read(_PIECE)
        piece = piece[-_LONGEST_TAG:] + more if more else b""


def _number(letters: bytes) -> int:
    """Return which column letters name, from 1."""
    number = 0
    for letter in letters:
        number = 26 * number + letter - ord("A") + 1
    return number
