"""Sheets of Excel and OpenDocument, read by calamine and written as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from python_calamine import CalamineError, CalamineSheet, CalamineWorkbook

from clustering_protocols.common.errors import InvalidData
from party_sdk.tables.cells import comma_warnings
from party_sdk.tables.dialect import Dialect
from party_sdk.tables.report import format_names
from party_sdk.tables.text_format import (
    HEAD_ROWS,
    as_text,
    count_titles,
    decimal_sign,
    title_warning,
    write_rows,
)
from party_sdk.tables.unpacking import Unpacked


def unpack_sheet(path: Path, dialect: Dialect, copy: Path) -> Unpacked:
    """Write one sheet as text: names of columns below its titles, then the rows.

    ``dialect.skip`` counts rows of the sheet, empty ones too. Columns without a name and
    without any value are left out.

    Raises InvalidData if it is no such file, or has several sheets and nobody said
        which.
    """
    try:
        with CalamineWorkbook.from_path(path) as book:
            sheet = book.get_sheet_by_name(_choose_sheet(path, book, dialect.sheet))
            return _write_sheet(sheet, dialect, copy)
    except (CalamineError, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the copy has no room
        raise InvalidData(f"{path.name!r} is no readable sheet.") from None


def sheet_names(path: Path) -> tuple[str, ...]:
    """Return the sheets of a file that hold something.

    Raises InvalidData if it is no such file.
    """
    try:
        with CalamineWorkbook.from_path(path) as book:
            return tuple(_filled_sheets(book))
    except (CalamineError, OSError, ValueError):
        raise InvalidData(f"{path.name!r} is no readable sheet.") from None


def _filled_sheets(book: CalamineWorkbook) -> list[str]:
    names = book.sheet_names
    return [name for name in names if book.get_sheet_by_name(name).height]


def _choose_sheet(path: Path, book: CalamineWorkbook, wanted: str | None) -> str:
    names = list(book.sheet_names)
    if wanted is not None:
        if wanted not in names:
            raise InvalidData(
                f"There is no sheet {wanted!r}; there are {format_names(names)}."
            )
        return wanted
    filled = _filled_sheets(book)
    if len(filled) > 1:
        raise InvalidData(
            f"{path.name!r} has several sheets: say which, --csv sheet=…, of "
            f"{format_names(filled)}."
        )
    if not names:
        raise InvalidData(f"{path.name!r} has no sheet.")
    return (filled or names)[0]


def _write_sheet(sheet: CalamineSheet, dialect: Dialect, copy: Path) -> Unpacked:
    first, _ = sheet.start or (0, 0)
    above = _count_rows_above(sheet, first, dialect.skip)
    columns = _filled_columns(sheet, above)
    if not columns:
        raise InvalidData(
            f"The sheet {sheet.name!r} is empty, or all of it is skipped."
        )
    rows = ([row[place] for place in columns] for row in _rows(sheet, above))
    names = [as_text(cell) for cell in next(rows)]
    decimal = dialect.decimal or _decimal(sheet, above)
    empty = write_rows(names, rows, copy, first=above + 2, decimal=decimal)
    has_titles = any(map(_is_filled, islice(_rows(sheet, first), above - first)))
    is_guess = has_titles and dialect.skip is None
    return Unpacked(
        first=above + 2,
        empty=tuple(empty),
        format={"sheet": sheet.name} | ({"skip": above} if has_titles else {}),
        decimal=decimal,
        warnings=(title_warning(above, "row"),) if is_guess else (),
    )


def _count_rows_above(sheet: CalamineSheet, first: int, skip: int | None) -> int:
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
    head = islice(_rows(sheet, above), HEAD_ROWS)
    return above + count_titles([[as_text(cell) for cell in row] for row in head])


def _decimal(sheet: CalamineSheet, above: int) -> str:
    """Return the sign of numbers that are texts; a point if it may part thousands."""
    head = islice(_rows(sheet, above), HEAD_ROWS)
    written = [[cell for cell in row if isinstance(cell, str)] for row in head]
    sign = decimal_sign(written)
    return "." if comma_warnings(written, Dialect(decimal=sign)) else sign


def _filled_columns(sheet: CalamineSheet, above: int) -> list[int]:
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
    """Yield rows of a sheet one by one: all of them as values would not fit into memory."""
    return islice(sheet.iter_rows(), begin, None)
