"""What a sheet of Excel shows otherwise than its values say, and what has no value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final
from xml.etree.ElementTree import Element, ParseError, iterparse
from zipfile import BadZipFile, ZipFile

from clustering_protocols.common.errors import InvalidData

UNVALUED: Final = "#NOVALUE"
"""In place of a formula that nobody calculated."""
_UNKNOWN: Final = "#N/A!"
"""In place of the error #N/A, which as a text stands for no value."""
_MOST_CELLS: Final = 100_000_000
"""Cells of a sheet of which most are empty; calamine holds all of them."""
_PERCENT_FORMATS: Final = frozenset({"9", "10"})
_PLACE: Final = re.compile(r"([A-Z]+)(\d+)")
_RELATION: Final = (
    "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
)


@dataclass(slots=True)
class SheetMarks:
    """Marks of rows, columns and cells, which are counted from 0.

    n_filled: how many cells hold something.
    hidden_rows, hidden_columns: those that a person does not see, by a filter or by hand.
    percents: by row: the columns of numbers that are shown as percentages.
    texts: by row and column: what stands in place of errors, and of formulas without a
        value.
    """

    n_filled: int = 0
    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: set[int] = field(default_factory=set)
    percents: dict[int, set[int]] = field(default_factory=dict)
    texts: dict[int, dict[int, str]] = field(default_factory=dict)


def read_marks(path: Path, sheet: str) -> SheetMarks | None:
    """Return the marks of a sheet; None of a file that is no .xlsx or .xlsm.

    Raises InvalidData if a cell stands so far from the others that the sheet cannot be
        held.
    """
    if path.suffix.lower() not in {".xlsx", ".xlsm"}:
        return None
    try:
        with ZipFile(path) as book, book.open(_part_of(book, sheet)) as content:
            return _read_sheet(content, path, _percent_styles(book))
    except (BadZipFile, KeyError, ParseError, NotImplementedError):
        raise InvalidData(f"{path.name!r} is no readable sheet.") from None


def _elements(content: IO[bytes]) -> Iterator[Element]:
    """Yield the elements of a part, each at its end and then emptied."""
    for _, element in iterparse(content):  # noqa: S314  a process of its own
        element.tag = element.tag.rpartition("}")[2]
        yield element


def _part_of(book: ZipFile, sheet: str) -> str:
    """Return the name of the part of an archive that holds a sheet."""
    with book.open("xl/workbook.xml") as content:
        ids = {
            each.get("name"): each.get(_RELATION)
            for each in _elements(content)
            if each.tag == "sheet"
        }
    with book.open("xl/_rels/workbook.xml.rels") as content:
        targets = {each.get("Id"): each.get("Target") for each in _elements(content)}
    target = targets[ids[sheet]] or ""
    return target.lstrip("/") if target.startswith("/") else f"xl/{target}"


def _percent_styles(book: ZipFile) -> frozenset[str]:
    """Return the styles of cells that show numbers as percentages."""
    if "xl/styles.xml" not in book.namelist():
        return frozenset()
    formats, styles = set(_PERCENT_FORMATS), list[str | None]()
    with book.open("xl/styles.xml") as content:
        for each in _elements(content):
            if each.tag == "numFmt" and "%" in each.get("formatCode", ""):
                formats.add(each.get("numFmtId", ""))
            elif each.tag == "cellXfs":
                styles = [style.get("numFmtId") for style in each]
    return frozenset(str(i) for i, number in enumerate(styles) if number in formats)


def _read_sheet(content: IO[bytes], path: Path, percents: frozenset[str]) -> SheetMarks:
    marks, width, row, column = SheetMarks(), 0, -1, -1
    events: Any = iterparse(content, ("start", "end"))  # noqa: S314  a process of its own
    for event, element in events:
        tag = element.tag.rpartition("}")[2]
        if event == "start":
            if tag == "row":
                row, column = int(element.get("r", row + 2)) - 1, -1
                if _is_true(element.get("hidden")):
                    marks.hidden_rows.add(row)
            continue
        if tag == "c":
            column = _column_of(element.get("r", ""), column + 1)
            width = max(width, column + 1)
            _mark_cell(marks, element, row, column, percents)
        elif tag == "row":
            element.clear()
        elif tag == "col" and _is_true(element.get("hidden")):
            ends = int(element.get("min", 1)), int(element.get("max", 1))
            marks.hidden_columns.update(range(ends[0] - 1, ends[1]))
    if (row + 1) * width > max(_MOST_CELLS, 50 * marks.n_filled):
        raise InvalidData(
            f"{path.name!r} has {row + 1:,} rows and {width:,} columns, nearly all of them "
            "empty: delete the cells that stand far from the table, or save it as CSV."
        )
    return marks


def _is_true(text: str | None) -> bool:
    return text in {"1", "true"}


def _column_of(place: str, following: int) -> int:
    """Return the column of a cell such as 'AB12', from 0; the following if none is said."""
    found = _PLACE.fullmatch(place)
    if found is None:
        return following
    number = 0
    for letter in found[1]:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number - 1


def _mark_cell(
    marks: SheetMarks, element: Element, row: int, column: int, percents: frozenset[str]
) -> None:
    parts = {each.tag.rpartition("}")[2]: each.text for each in element}
    marks.n_filled += bool(parts)
    value, text = parts.get("v"), ""
    if element.get("t") == "e":
        text = value if value and value != "#N/A" else _UNKNOWN
    elif "f" in parts and not value:
        text = UNVALUED
    elif value and element.get("s") in percents and element.get("t", "n") == "n":
        marks.percents.setdefault(row, set()).add(column)
    if text:
        marks.texts.setdefault(row, {})[column] = text
