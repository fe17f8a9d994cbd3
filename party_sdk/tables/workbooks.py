"""Sheets of Excel and OpenDocument, read by calamine and written as text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    SheetVisibleEnum,
)

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.terms.schema import normal
from party_sdk.tables.dialect import Dialect
from party_sdk.tables.report import format_names
from party_sdk.tables.sheet_marks import UNVALUED, SheetMarks, read_marks
from party_sdk.tables.text_format import (
    HEAD_ROWS,
    as_text,
    count_titles,
    title_warning,
    write_rows,
)
from party_sdk.tables.unpacking import Unpacked

_SIGNED: Final = re.compile(r"[+-]?\d*(?:[.,]\d*)+(?:[eE][+-]?\d+)?")
"""A text that is a number with points or commas."""


def unpack_sheet(
    path: Path, dialect: Dialect, used: Collection[str] | None, copy: Path
) -> Unpacked:
    """Write one sheet as text: names of columns below its titles, then the rows.

    ``dialect.skip`` counts rows of the sheet, empty ones too. Columns without a name and
    without any value are left out.

    used: the columns that will be asked for; None for all.

    Raises InvalidData if it is no such file, or has several sheets and nobody said
        which.
    """
    with _open_book(path) as book:
        name = _choose_sheet(path, book, dialect.sheet)
        marks = read_marks(path, name)
        rows = _Rows(book.get_sheet_by_name(name), marks or SheetMarks(), dialect)
        unpacked = _write_sheet(rows, used, copy)
    if marks is not None:
        return unpacked
    unseen = (
        f"What is hidden in a {path.suffix} file, shown as percentages, or an error or a "
        "formula without a value does not show here: an .xlsx file has it."
    )
    return unpacked.model_copy(update={"warnings": (*unpacked.warnings, unseen)})


@contextmanager
def _open_book(path: Path) -> Iterator[CalamineWorkbook]:
    try:
        with CalamineWorkbook.from_path(path) as book:
            yield book
    except (CalamineError, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the copy has no room
        raise InvalidData(f"{path.name!r} is no readable sheet.") from None


def sheet_names(path: Path) -> tuple[str, ...]:
    """Return the sheets of a file that hold something.

    Raises InvalidData if it is no such file.
    """
    with _open_book(path) as book:
        return tuple(_filled_sheets(path, book))


def _filled_sheets(path: Path, book: CalamineWorkbook) -> list[str]:
    filled = []
    for name in book.sheet_names:
        marks = read_marks(path, name)
        n_cells = (
            book.get_sheet_by_name(name).height if marks is None else marks.n_filled
        )
        if n_cells:
            filled.append(name)
    return filled


def _choose_sheet(path: Path, book: CalamineWorkbook, wanted: str | None) -> str:
    names = list(book.sheet_names)
    if wanted is not None:
        if wanted not in names:
            raise InvalidData(
                f"There is no sheet {wanted!r}; there are {format_names(names)}."
            )
        return wanted
    filled = _filled_sheets(path, book)
    if len(filled) > 1:
        raise InvalidData(
            f"{path.name!r} has several sheets: say which, --csv sheet=…, of "
            f"{format_names(filled)}."
        )
    if not names:
        raise InvalidData(f"{path.name!r} has no sheet.")
    hidden = {
        sheet.name
        for sheet in book.sheets_metadata
        if sheet.visible is not SheetVisibleEnum.Visible
    }
    if hidden.intersection(filled):
        raise InvalidData(
            f"The only sheet of {path.name!r} that holds something is hidden: --csv "
            f"sheet={filled[0]!r} reads it."
        )
    return (filled or names)[0]


class _Rows:
    """The rows of a sheet as they are read: with texts for cells without a value.

    columns are counted from the first that holds something.
    """

    def __init__(
        self, sheet: CalamineSheet, marks: SheetMarks, dialect: Dialect
    ) -> None:
        self.sheet, self.marks, self.dialect = sheet, marks, dialect
        self.n_above, self.left = sheet.start or (0, 0)
        self.leaves_out = dialect.hidden == "leave-out"

    def begin_at(self, begin: int) -> Iterator[list[Any]]:
        """Yield rows one by one: all of them as values would not fit into memory."""
        rows = islice(self.sheet.iter_rows(), begin, None)
        for number, row in enumerate(rows, begin):
            if self.leaves_out and number in self.marks.hidden_rows:
                yield [""] * len(row)
                continue
            for column, text in self.marks.texts.get(number, {}).items():
                row[column - self.left] = text
            if self.dialect.percent == "shown":
                for column in self.marks.percents.get(number, ()):
                    value: Any = row[column - self.left]
                    row[column - self.left] = float(f"{100 * value:.14g}")
            yield row


def _write_sheet(rows: _Rows, used: Collection[str] | None, copy: Path) -> Unpacked:
    dialect, sheet = rows.dialect, rows.sheet
    above = _count_rows_above(rows, dialect.skip)
    contents = _survey_columns(rows, above)
    hidden = {column - rows.left for column in rows.marks.hidden_columns}
    columns = [
        place
        for place, content in enumerate(contents)
        if content.is_filled and not (rows.leaves_out and place in hidden)
    ]
    if not columns:
        raise InvalidData(
            f"The sheet {sheet.name!r} is empty, or all of it is skipped."
        )
    chosen = [contents[place] for place in columns]
    cells = ([row[place] for place in columns] for row in rows.begin_at(above))
    names = [as_text(cell) for cell in next(cells)]
    numeric = [place for place, each in enumerate(chosen) if each.has_numbers]
    mixed = [place for place in numeric if chosen[place].has_signs]
    empty = write_rows(names, cells, copy, first=above + 2, mixed=mixed)
    titles = islice(rows.begin_at(rows.n_above), above - rows.n_above)
    has_titles = any(map(_is_filled, titles))
    is_guess = has_titles and dialect.skip is None
    asked = {
        name: each
        for name, each in zip(names, chosen, strict=True)
        if used is None or normal(name) in used
    }
    unseen = [names[i] for i, place in enumerate(columns) if place in hidden]
    n_hidden = sum(number > above for number in rows.marks.hidden_rows)
    return Unpacked(
        first=above + 2,
        empty=tuple(empty),
        format={"sheet": sheet.name} | ({"skip": above} if has_titles else {}),
        numeric=tuple(numeric),
        mixed=tuple(mixed),
        problems=(
            *_ask_hidden(n_hidden, [name for name in unseen if name in asked], dialect),
            *_ask_percents(asked, dialect),
        ),
        warnings=(
            *((title_warning(above, "row"),) if is_guess else ()),
            *_tell_hidden(n_hidden, dialect),
            *_tell_cells(asked),
        ),
    )


def _ask_hidden(n_rows: int, columns: Sequence[str], dialect: Dialect) -> Iterator[str]:
    """Yield what is hidden, where nobody said whether it takes part."""
    if dialect.hidden is None and (n_rows or columns):
        rows = f"{n_rows} row{'s' * (n_rows > 1)}" if n_rows else ""
        named = f"the columns {format_names(columns)}" if columns else ""
        yield (
            f"hidden in the sheet: {' and '.join(filter(None, (rows, named)))}: say --csv "
            "hidden=leave-out, or hidden=read where they take part ([file] in a mapping)"
        )


def _tell_hidden(n_rows: int, dialect: Dialect) -> Iterator[str]:
    if n_rows and dialect.hidden is not None:
        what = "left out" if dialect.hidden == "leave-out" else "read"
        yield f"{n_rows} hidden row{'s' * (n_rows > 1)} of the sheet: {what}."


def _ask_percents(contents: Mapping[str, _Content], dialect: Dialect) -> Iterator[str]:
    """Yield columns of percentages and plain numbers, where nobody said what they are."""
    for name, content in contents.items():
        n = content.n_percents
        if dialect.percent is None and n and content.n_numbers > n:
            yield (
                f"{name}: {n} of {content.n_numbers} numbers are shown as percentages, and "
                "stored as hundredths of what is shown: --csv percent=shown or "
                "percent=stored says which counts ([file] in a mapping)"
            )


def _tell_cells(contents: Mapping[str, _Content]) -> Iterator[str]:
    """Yield what stands in place of values, and percentages."""
    for name, content in contents.items():
        if content.n_percents == content.n_numbers > 0:
            yield f"{name!r}: all numbers are percentages: 7.2 % is 0.072 here."
        for text, n in content.texts.items():
            what, remedy = "an error", "mend it"
            if text == UNVALUED:
                what = "a formula without a value"
                remedy = "calculate it and save the file in Excel"
            yield (
                f"{name!r}: {what} ({text}) in {n} row{'s' * (n > 1)}: {remedy}, or say "
                f"--csv missing={text} if it stands for no value."
            )


def _count_rows_above(rows: _Rows, skip: int | None) -> int:
    """Return how many rows stand above the names: the first that is filled, below titles.

    skip: how many rows of the sheet stand above the names, if the operator says so.
    """
    above = rows.n_above if skip is None else max(rows.n_above, skip)
    for row in rows.begin_at(above):
        if _is_filled(row):
            break
        above += 1
    if skip is not None:
        return above
    head = islice(rows.begin_at(above), HEAD_ROWS)
    return above + count_titles([[as_text(cell) for cell in row] for row in head])


@dataclass(slots=True)
class _Content:
    """What a column holds: whether anything, numbers, and texts of numbers with signs.

    texts: those in place of a value, each with its number of cells.
    """

    is_filled: bool = False
    n_numbers: int = 0
    n_percents: int = 0
    has_signs: bool = False
    texts: Counter[str] = field(default_factory=Counter)

    @property
    def has_numbers(self) -> bool:
        """Return whether there are numbers."""
        return self.n_numbers > 0

    def add(self, cell: Any) -> None:
        """Take a cell into account that holds something."""
        self.is_filled = self.is_filled or bool(as_text(cell))
        if isinstance(cell, float):
            self.n_numbers += 1
        elif isinstance(cell, str) and not self.has_signs:
            self.has_signs = _SIGNED.fullmatch(cell.strip()) is not None


def _survey_columns(rows: _Rows, above: int) -> list[_Content]:
    """Return what the columns hold below a row, with names."""
    contents = [_Content() for _ in range(rows.sheet.width)]
    for number, row in enumerate(rows.begin_at(above), above):
        if number == above:
            for content, cell in zip(contents, row, strict=True):
                content.is_filled = bool(as_text(cell))
            continue
        for content, cell in zip(contents, row, strict=True):
            if cell != "":
                content.add(cell)
        if rows.leaves_out and number in rows.marks.hidden_rows:
            continue
        for column in rows.marks.percents.get(number, ()):
            contents[column - rows.left].n_percents += 1
        for column, text in rows.marks.texts.get(number, {}).items():
            contents[column - rows.left].texts[text] += 1
    return contents


def _is_filled(row: Sequence[Any]) -> bool:
    return any(map(as_text, row))
