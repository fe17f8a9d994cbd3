"""Read sheets of Excel with calamine, and copy them to Arrow."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final
from xml.etree.ElementTree import Element, ParseError, iterparse
from zipfile import BadZipFile, ZipFile

from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    SheetVisibleEnum,
)

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.terms.schema import normalise_text
from party_sdk.tables.arrow_tables import write_rows
from party_sdk.tables.cells import (
    HEAD_ROWS,
    Dialect,
    as_text,
    count_titles,
    title_warning,
)
from party_sdk.tables.report import format_names
from party_sdk.tables.unpacking import Unpacked

NO_VALUE: Final = "#NOVALUE"
"""The text that replaces a formula without a calculated value."""
_NA_ERROR: Final = "#N/A!"
"""The text that replaces the error #N/A, because #N/A as a text means missing."""
_MOST_CELLS: Final = 100_000_000
"""Limit on the cells of a nearly empty sheet: calamine stores empty cells as well."""
_PERCENT_FORMATS: Final = frozenset({"9", "10"})
_TRUE: Final = frozenset({"1", "true"})
_CELL_REFERENCE: Final = re.compile(r"([A-Z]+)(\d+)")
_RELATION: Final = (
    "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
)


@dataclass(slots=True)
class SheetMarks:
    """Properties of a sheet that calamine does not report; indices are from 0.

    n_filled: number of cells that are not empty.
    hidden_rows, hidden_columns: indices of the rows and columns that are hidden by a
        filter or by hand.
    percents: for each row, the columns whose number is displayed as a percentage.
    texts: by row and column, the text that replaces an error or a formula without a
        value.
    """

    n_filled: int = 0
    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: set[int] = field(default_factory=set)
    percents: dict[int, set[int]] = field(default_factory=dict)
    texts: dict[int, dict[int, str]] = field(default_factory=dict)


_UNREADABLE: Final = (
    *(CalamineError, ValueError, BadZipFile, KeyError, ParseError),
    NotImplementedError,  # a compression that Python does not know
)
"""Errors of the libraries that read workbooks."""


def read_marks(path: Path, sheet: str) -> SheetMarks:
    """Read the marks of a sheet.

    Raises InvalidData if the sheet is unreadable, or too large because of distant cells.
    """
    try:
        with ZipFile(path) as book, book.open(_sheet_part(book, sheet)) as content:
            return _scan_sheet(content, path, _percent_styles(book))
    except _UNREADABLE:
        raise InvalidData(f"{path.name!r} is not a readable sheet.") from None


def _iter_elements(content: IO[bytes]) -> Iterator[Element]:
    """Yield each element of an XML document as soon as it is complete."""
    for _, element in iterparse(content):  # noqa: S314  a process of its own
        element.tag = element.tag.rpartition("}")[2]
        yield element


def _sheet_part(book: ZipFile, sheet: str) -> str:
    with book.open("xl/workbook.xml") as content:
        ids = {
            element.get("name"): element.get(_RELATION)
            for element in _iter_elements(content)
            if element.tag == "sheet"
        }
    with book.open("xl/_rels/workbook.xml.rels") as content:
        targets = {
            element.get("Id"): element.get("Target")
            for element in _iter_elements(content)
        }
    target = targets[ids[sheet]] or ""
    return target.lstrip("/") if target.startswith("/") else f"xl/{target}"


def _percent_styles(book: ZipFile) -> frozenset[str]:
    if "xl/styles.xml" not in book.namelist():
        return frozenset()
    formats, styles = set(_PERCENT_FORMATS), list[str | None]()
    with book.open("xl/styles.xml") as content:
        for element in _iter_elements(content):
            if element.tag == "numFmt" and "%" in element.get("formatCode", ""):
                formats.add(element.get("numFmtId", ""))
            elif element.tag == "cellXfs":
                styles = [style.get("numFmtId") for style in element]
    return frozenset(str(i) for i, number in enumerate(styles) if number in formats)


def _scan_sheet(content: IO[bytes], path: Path, percents: frozenset[str]) -> SheetMarks:
    marks, width, row, column = SheetMarks(), 0, -1, -1
    events: Any = iterparse(content, ("start", "end"))  # noqa: S314  a process of its own
    for event, element in events:
        tag = element.tag.rpartition("}")[2]
        if event == "start":
            if tag == "row":
                row, column = int(element.get("r", row + 2)) - 1, -1
                if element.get("hidden") in _TRUE:
                    marks.hidden_rows.add(row)
            continue
        if tag == "c":
            column = _column_of(element.get("r", ""), column + 1)
            width = max(width, column + 1)
            _mark_cell(marks, element, row, column, percents)
        elif tag == "row":
            element.clear()
        elif tag == "col" and element.get("hidden") in _TRUE:
            ends = int(element.get("min", 1)), int(element.get("max", 1))
            marks.hidden_columns.update(range(ends[0] - 1, ends[1]))
    if (row + 1) * width > max(_MOST_CELLS, 50 * marks.n_filled):
        raise InvalidData(
            f"{path.name!r} has {row + 1:,} rows and {width:,} columns, nearly all of them "
            "empty: delete the cells far from the table, or save it as CSV."
        )
    return marks


def _column_of(reference: str, default: int) -> int:
    """Return the column index of a reference such as AB12, or ``default`` if absent."""
    match = _CELL_REFERENCE.fullmatch(reference)
    if match is None:
        return default
    number = 0
    for letter in match[1]:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1


def _mark_cell(
    marks: SheetMarks, element: Element, row: int, column: int, percents: frozenset[str]
) -> None:
    parts = {child.tag.rpartition("}")[2]: child.text for child in element}
    marks.n_filled += bool(parts)
    value, text = parts.get("v"), ""
    if element.get("t") == "e":
        text = value if value and value != "#N/A" else _NA_ERROR
    elif "f" in parts and not value:
        text = NO_VALUE
    elif value and element.get("s") in percents and element.get("t", "n") == "n":
        marks.percents.setdefault(row, set()).add(column)
    if text:
        marks.texts.setdefault(row, {})[column] = text


_SEPARATED_NUMBER: Final = re.compile(r"[+-]?\d*(?:[.,]\d*)+(?:[eE][+-]?\d+)?")
"""Matches a number with points or commas that is written as a text."""


def unpack_sheet(
    path: Path, dialect: Dialect, used: Collection[str] | None, copy: Path
) -> Unpacked:
    """Copy one sheet: the column names below its title rows, then the rows.

    Columns with neither a name nor a value are left out. ``dialect.skip`` counts the
    rows above the names, including empty ones. Only ``used`` columns cause warnings.

    Raises InvalidData if the file is not a workbook, or has several sheets and
        ``dialect`` does not choose one.
    """
    with _open_book(path) as book:
        name, marks = _choose_sheet(path, book, dialect.sheet)
        rows = _SheetRows(book.get_sheet_by_name(name), marks, dialect)
        return _write_sheet(rows, used, copy)


@contextmanager
def _open_book(path: Path) -> Iterator[CalamineWorkbook]:
    try:
        with CalamineWorkbook.from_path(path) as book:
            yield book
    except (*_UNREADABLE, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # an error of the system, such as a full disk
        raise InvalidData(f"{path.name!r} is not a readable sheet.") from None


def read_sheet_names(path: Path) -> tuple[str, ...]:
    """Return the names of a workbook's sheets that are not empty.

    Raises InvalidData if the file is not a workbook.
    """
    with _open_book(path) as book:
        return tuple(_filled_sheets(path, book))


def _filled_sheets(path: Path, book: CalamineWorkbook) -> dict[str, SheetMarks]:
    """Return the marks of each sheet that is not empty, by name."""
    marks_by_name = {name: read_marks(path, name) for name in book.sheet_names}
    return {name: marks for name, marks in marks_by_name.items() if marks.n_filled}


def _choose_sheet(
    path: Path, book: CalamineWorkbook, chosen: str | None
) -> tuple[str, SheetMarks]:
    if chosen is not None:
        if chosen not in book.sheet_names:
            raise InvalidData(
                f"There is no sheet {chosen!r}; there are "
                f"{format_names(book.sheet_names)}."
            )
        return chosen, read_marks(path, chosen)
    filled = _filled_sheets(path, book)
    if len(filled) > 1:
        raise InvalidData(
            f"{path.name!r} has several sheets: choose one with --csv sheet=…, of "
            f"{format_names(filled)}."
        )
    if not filled:
        raise InvalidData(f"All sheets of {path.name!r} are empty.")
    [(name, marks)] = filled.items()
    visible = {sheet.name: sheet.visible for sheet in book.sheets_metadata}
    if visible[name] is not SheetVisibleEnum.Visible:
        raise InvalidData(
            f"The only sheet of {path.name!r} that is not empty is hidden: --csv "
            f"sheet={name!r} reads it."
        )
    return name, marks


class _SheetRows:
    """The rows of a sheet, in which texts replace errors and uncalculated formulas.

    left: index of the first column that is not empty; each row begins there.
    """

    def __init__(
        self, sheet: CalamineSheet, marks: SheetMarks, dialect: Dialect
    ) -> None:
        self.sheet, self.marks, self.dialect = sheet, marks, dialect
        self.n_above, self.left = sheet.start or (0, 0)
        self.leaves_out = dialect.hidden == "leave-out"

    def iterate_from(self, begin: int) -> Iterator[list[Any]]:
        """Yield the rows from index ``begin`` on, one at a time to save memory."""
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


def _write_sheet(
    rows: _SheetRows, used: Collection[str] | None, copy: Path
) -> Unpacked:
    dialect, sheet = rows.dialect, rows.sheet
    header_row = _count_rows_above(rows, dialect.skip)
    contents = _survey_columns(rows, header_row)
    hidden_columns = {column - rows.left for column in rows.marks.hidden_columns}
    columns = [
        index
        for index, content in enumerate(contents)
        if content.is_filled and not (rows.leaves_out and index in hidden_columns)
    ]
    if not columns:
        raise InvalidData(
            f"The sheet {sheet.name!r} is empty, or all of it is skipped."
        )
    filled = [contents[index] for index in columns]
    cells = ([row[index] for index in columns] for row in rows.iterate_from(header_row))
    names = [as_text(cell) for cell in next(cells)]
    numeric = {i for i, content in enumerate(filled) if content.is_numeric}
    numbers = {i for i, content in enumerate(filled) if content.n_numbers}
    mixed = {i for i in numbers if filled[i].has_separators}
    unpacked = write_rows(names, cells, copy, numeric, mixed, first=header_row + 2)
    titles = islice(rows.iterate_from(rows.n_above), header_row - rows.n_above)
    has_titles = any(any(map(as_text, row)) for row in titles)
    used_columns = {
        name: content
        for name, content in zip(names, filled, strict=True)
        if used is None or normalise_text(name) in used
    }
    hidden = [names[i] for i, index in enumerate(columns) if index in hidden_columns]
    hidden = [name for name in hidden if name in used_columns]
    n_hidden = sum(number > header_row for number in rows.marks.hidden_rows)
    hidden_rows = f"{n_hidden} row{'s' * (n_hidden > 1)}" if n_hidden else ""
    problems, warnings = list[str](), list[str]()
    if has_titles and dialect.skip is None:
        warnings.append(title_warning(header_row, "row"))
    if dialect.hidden is None and (n_hidden or hidden):
        parts = [hidden_rows, f"the columns {format_names(hidden)}" if hidden else ""]
        problems.append(
            f"hidden in the sheet: {' and '.join(filter(None, parts))}: use --csv "
            "hidden=leave-out, or hidden=read if they take part ([file] in a mapping)"
        )
    elif n_hidden:
        action = "left out" if rows.leaves_out else "read"
        warnings.append(
            f"{hidden_rows.replace(' ', ' hidden ')} of the sheet: {action}."
        )
    for name, content in used_columns.items():
        n = content.n_percents
        if dialect.percent is None and 0 < n < content.n_numbers:
            problems.append(
                f"{name}: {n} of {content.n_numbers} numbers are shown as percentages, and "
                "stored as a hundredth of that: choose --csv percent=shown or "
                "percent=stored ([file] in a mapping)"
            )
    return unpacked.model_copy(
        update={
            "pointed": tuple(numbers - mixed),
            "mixed": tuple(mixed),
            "format": {"sheet": sheet.name}
            | ({"skip": header_row} if has_titles else {}),
            "problems": tuple(problems),
            "warnings": (*warnings, *_cell_warnings(used_columns)),
        }
    )


def _cell_warnings(contents: Mapping[str, _ColumnCounts]) -> Iterator[str]:
    for name, content in contents.items():
        if content.n_percents == content.n_numbers > 0:
            yield f"{name!r}: all numbers are percentages: 7.2 % is read as 0.072."
        for text, n in content.texts.items():
            kind, remedy = "an error", "correct it"
            if text == NO_VALUE:
                kind = "a formula without a value"
                remedy = "calculate it and save the file in Excel"
            yield (
                f"{name!r}: {kind} ({text}) in {n} row{'s' * (n > 1)}: {remedy}; if it "
                f'means a missing value: missing = ["{text}"] in a mapping.'
            )


def _count_rows_above(rows: _SheetRows, skip: int | None) -> int:
    """Return the number of rows above the column names.

    skip: the number that the operator chose; None to detect it.
    """
    n_above = rows.n_above if skip is None else max(rows.n_above, skip)
    for row in rows.iterate_from(n_above):
        if any(map(as_text, row)):
            break
        n_above += 1
    if skip is not None:
        return n_above
    head = islice(rows.iterate_from(n_above), HEAD_ROWS)
    return n_above + count_titles([[as_text(cell) for cell in row] for row in head])


@dataclass(slots=True)
class _ColumnCounts:
    """Counts of the cells in one column of a sheet.

    texts: how often each text replaces an error or an uncalculated formula.
    """

    is_filled: bool = False
    n_filled: int = 0
    n_numbers: int = 0
    n_percents: int = 0
    has_separators: bool = False
    texts: Counter[str] = field(default_factory=Counter)

    @property
    def is_numeric(self) -> bool:
        return 0 < self.n_numbers == self.n_filled and not self.texts

    def count_cell(self, cell: Any) -> None:
        if as_text(cell):
            self.is_filled = True
            self.n_filled += 1
        if isinstance(cell, float):
            self.n_numbers += 1
        elif isinstance(cell, str) and not self.has_separators:
            self.has_separators = _SEPARATED_NUMBER.fullmatch(cell.strip()) is not None


def _survey_columns(rows: _SheetRows, header_row: int) -> list[_ColumnCounts]:
    contents = [_ColumnCounts() for _ in range(rows.sheet.width)]
    for number, row in enumerate(rows.iterate_from(header_row), header_row):
        if number == header_row:
            for content, cell in zip(contents, row, strict=True):
                content.is_filled = bool(as_text(cell))
            continue
        for content, cell in zip(contents, row, strict=True):
            if cell != "":
                content.count_cell(cell)
        if rows.leaves_out and number in rows.marks.hidden_rows:
            continue
        for column in rows.marks.percents.get(number, ()):
            contents[column - rows.left].n_percents += 1
        for column, text in rows.marks.texts.get(number, {}).items():
            contents[column - rows.left].texts[text] += 1
    return contents
