"""Sheets of Excel and OpenDocument, read by calamine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from python_calamine import CalamineError, CalamineSheet, CalamineWorkbook

from clustering_protocols.common.errors import InvalidData
from party_sdk.tables.formats.copied_source import CopiedSource
from party_sdk.tables.parsing.column_kinds import ambiguous
from party_sdk.tables.parsing.dialect import Dialect
from party_sdk.tables.parsing.dialect_detection import decimal_sign
from party_sdk.tables.parsing.dimensions import check_dimensions
from party_sdk.tables.parsing.limits import Limits
from party_sdk.tables.parsing.rows_as_text import as_text, write_rows
from party_sdk.tables.parsing.titles import LOOKED_AT, n_titles, told_titles
from party_sdk.tables.report import format_names


def sheet_source(
    path: Path, said: Dialect, folder: Path, limits: Limits
) -> CopiedSource:
    """Return one sheet of a file: names of columns below its titles, then the rows.

    What is said to be skipped are rows of the sheet, empty ones too. Columns without a
    name and without any value are left out.

    Raises InvalidData if it is no such file, spans too many cells, or has several
        sheets and nobody said which.
    """
    try:
        check_dimensions(path, limits)
        with CalamineWorkbook.from_path(path) as book:
            name = _choose_sheet(path, book, said.sheet)
            sheet = book.get_sheet_by_name(name)
            return _source_of(sheet, said, folder)
    except (CalamineError, OSError, ValueError):
        raise InvalidData(f"{path.name!r} is no readable sheet.") from None


def sheet_names(path: Path, limits: Limits) -> tuple[str, ...]:
    """Return the sheets of a file that hold something.

    Raises InvalidData if it is no such file.
    """
    try:
        check_dimensions(path, limits)
        with CalamineWorkbook.from_path(path) as book:
            return tuple(_filled_sheets(book))
    except (CalamineError, OSError, ValueError):
        raise InvalidData(f"{path.name!r} is no readable sheet.") from None


def _filled_sheets(book: CalamineWorkbook) -> list[str]:
    names = book.sheet_names
    return [name for name in names if book.get_sheet_by_name(name).height]


def _source_of(sheet: CalamineSheet, said: Dialect, folder: Path) -> CopiedSource:
    first, _ = sheet.start or (0, 0)
    above = _names_at(sheet, first, said.skip)
    kept = _find_filled_columns(sheet, above)
    if not kept:
        raise InvalidData(
            f"The sheet {sheet.name!r} is empty, or all of it is skipped."
        )
    rows = ([row[place] for place in kept] for row in _rows(sheet, above))
    names = [as_text(cell) for cell in next(rows)]
    copy = folder / "sheet.csv"
    decimal = said.decimal or _decimal(sheet, above)
    called = write_rows(names, rows, copy, first=above + 2, decimal=decimal)
    has_titles = any(map(_is_filled, islice(_rows(sheet, first), above - first)))
    shown = {"sheet": sheet.name} | ({"skip": above} if has_titles else {})
    source = CopiedSource(copy, said, called, shown, decimal)
    if has_titles and said.skip is None:
        source.warnings = [*source.warnings, told_titles(above, "row")]
    return source


def _names_at(sheet: CalamineSheet, first: int, skip: int | None) -> int:
    """Return how many rows stand above the names: the first that is filled, below titles.

    first: how many empty rows the sheet begins with.
    skip: how many rows of the sheet stand above the names, if the operator says so.
    """
    above = first if skip is None else max(first, skip)
    for row in _rows(sheet, above):
        if _is_filled(row):
            break
        above += 1
    if skip is not None:
        return above
    head = islice(_rows(sheet, above), LOOKED_AT)
    return above + n_titles([[as_text(cell) for cell in row] for row in head])


def _decimal(sheet: CalamineSheet, above: int) -> str:
    """Return the sign of numbers that are texts; a point if it may part thousands."""
    head = islice(_rows(sheet, above), LOOKED_AT)
    written = [[cell for cell in row if isinstance(cell, str)] for row in head]
    sign = decimal_sign(written)
    return "." if ambiguous(written, Dialect(decimal=sign)) else sign


def _find_filled_columns(sheet: CalamineSheet, above: int) -> list[int]:
    """Return the columns that hold something in or below a row."""
    filled = [False] * sheet.width
    for row in _rows(sheet, above):
        for place, cell in enumerate(row):
            if not filled[place] and as_text(cell):
                filled[place] = True
    return [place for place, is_filled in enumerate(filled) if is_filled]


def _is_filled(row: Sequence[Any]) -> bool:
    return any(map(as_text, row))


def _rows(sheet: CalamineSheet, begin: int) -> Iterator[list[Any]]:
    """Yield rows of a sheet one by one: all of them as values would not fit into memory.

    begin: how many rows of the sheet stand above them.
    """
    return islice(sheet.iter_rows(), begin, None)


def _choose_sheet(path: Path, book: CalamineWorkbook, said: str | None) -> str:
    names = list(book.sheet_names)
    if said is not None:
        if said not in names:
            raise InvalidData(
                f"There is no sheet {said!r}; there are {format_names(names)}."
            )
        return said
    full = _filled_sheets(book)
    if len(full) > 1:
        raise InvalidData(
            f"{path.name!r} has several sheets: say which, --csv sheet=…, of {format_names(full)}."
        )
    if not names:
        raise InvalidData(f"{path.name!r} has no sheet.")
    return (full or names)[0]
