"""Sheets of Excel and OpenDocument, read by calamine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from python_calamine import CalamineError, CalamineWorkbook

from clustering_protocols.errors import InvalidData
from party_sdk.tables.dialect import Dialect
from party_sdk.tables.report import listed
from party_sdk.tables.rows_as_text import as_text, write_rows
from party_sdk.tables.text import CopiedSource
from party_sdk.tables.titles import n_titles, told_titles


def sheet_source(path: Path, said: Dialect, folder: Path) -> CopiedSource:
    """Return one sheet of a file: names of columns below its titles, then the rows.

    What is said to be skipped are rows of the sheet, empty ones too. Columns without a
    name and without any value are left out.

    Raises
    ------
    InvalidData
        If it is no such file, or has several sheets and nobody said which.
    """
    try:
        with CalamineWorkbook.from_path(path) as book:
            name = _chosen(path, book, said.sheet)
            sheet = book.get_sheet_by_name(name)
            rows = sheet.to_python(skip_empty_area=True)
            first, _ = sheet.start or (0, 0)
    except (CalamineError, OSError, ValueError):
        raise InvalidData(f"{path.name!r} is no readable sheet.") from None
    cells = [[as_text(cell) for cell in row] for row in rows]
    begin = _names_at(cells, first, said.skip)
    if begin >= len(cells):
        raise InvalidData(f"The sheet {name!r} is empty, or all of it is skipped.")
    kept = [
        i for i, column in enumerate(zip(*cells[begin:], strict=True)) if any(column)
    ]
    names, *values = [[row[i] for i in kept] for row in cells[begin:]]
    copy = folder / "sheet.csv"
    above = first + begin
    numbers = write_rows(names, values, copy, first=above + 2)
    has_titles = any(map(any, cells[:begin]))
    shown = {"sheet": name} | ({"skip": above} if has_titles else {})
    source = CopiedSource(copy, said, numbers, shown)
    if has_titles and said.skip is None:
        source.warnings = [*source.warnings, told_titles(above, "row")]
    return source


def _names_at(rows: Sequence[Sequence[str]], first: int, skip: int | None) -> int:
    """Return which of the rows holds the names: the first that is filled, below titles.

    Parameters
    ----------
    first : int
        How many rows of the sheet stand above these.
    skip : int, optional
        How many rows of the sheet stand above the names, if the operator says so.
    """
    begin = 0 if skip is None else max(0, skip - first)
    while begin < len(rows) and not any(rows[begin]):
        begin += 1
    return begin + n_titles(rows) if skip is None else begin


def _chosen(path: Path, book: CalamineWorkbook, said: str | None) -> str:
    names = list(book.sheet_names)
    if said is not None and said not in names:
        raise InvalidData(f"There is no sheet {said!r}; there are {listed(names)}.")
    full = [name for name in names if book.get_sheet_by_name(name).height]
    if said is None and len(full) > 1:
        raise InvalidData(
            f"{path.name!r} has several sheets: say which, --csv sheet=…, of {listed(full)}."
        )
    if not names:
        raise InvalidData(f"{path.name!r} has no sheet.")
    return said or (full or names)[0]
