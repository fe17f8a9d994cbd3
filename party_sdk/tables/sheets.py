"""Sheets of Excel and OpenDocument, read by calamine."""

from __future__ import annotations

from pathlib import Path

from python_calamine import CalamineError, CalamineWorkbook

from clustering_protocols.errors import InvalidData
from party_sdk.tables.dialect import Dialect
from party_sdk.tables.report import listed
from party_sdk.tables.rows_as_text import as_text, write_rows
from party_sdk.tables.text import CopiedSource


def sheet_source(path: Path, said: Dialect, folder: Path) -> CopiedSource:
    """Return one sheet of a file; its first row that is not empty holds the names.

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
    if not rows:
        raise InvalidData(f"The sheet {name!r} is empty.")
    copy = folder / "sheet.csv"
    names = [as_text(cell) for cell in rows[0]]
    numbers = write_rows(names, rows[1:], copy, first=first + 2)
    return CopiedSource(copy, said, numbers, {"sheet": name})


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
