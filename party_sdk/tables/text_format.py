"""How a text file is written: found in its beginning, and written for a copy."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any, Final

from party_sdk.tables.cells import is_date, is_number, read_minus
from party_sdk.tables.dialect import Dialect

HEAD_ROWS: Final = 200
"""Rows that are looked at."""
_MOST_TITLES: Final = 30
_SIGNS: Final = (Dialect(decimal="."), Dialect(decimal=","))


def detect(text: str, given: Dialect) -> tuple[Dialect, list[str]]:
    """Return how a text is written, and sentences on rows that were read as titles.

    text: whole lines from the beginning of a file.
    given: what the operator says, which stays.
    """
    lines = [line.rstrip("\n") for line in _lines(text)]
    skip = _lines_before(lines) if given.skip is None else given.skip
    delimiter = given.delimiter or _sep_line(lines)
    delimiter = delimiter or _find_delimiter(lines[skip:], given.quote)
    dialect = replace(given, skip=skip, delimiter=delimiter)
    return _below_titles(text, dialect) if given.skip is None else (dialect, [])


def records(text: str, dialect: Dialect) -> list[list[str]]:
    """Return the cells of a text's lines, the names of columns first."""
    return [cells for _, cells in _records(text, dialect) if cells]


def _records(text: str, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """Yield cells with the number of lines up to their end.

    They end before a huge field: the reader of the whole file names its line.
    """
    reader = split_lines(_lines(text)[dialect.skip or 0 :], dialect)
    with suppress(csv.Error):
        for cells in reader:
            yield reader.line_num, cells


def split_lines(lines: Iterable[str], dialect: Dialect) -> Any:
    """Return a reader of lines as cells; its ``line_num`` counts them."""
    delimiter = dialect.delimiter or ","
    return csv.reader(lines, delimiter=delimiter, quotechar=dialect.quote)


def _lines(text: str) -> list[str]:
    """Return the lines of a text, whichever way they end."""
    return list(io.StringIO(text, newline=None))


def _sep_line(lines: Sequence[str]) -> str | None:
    """Return the delimiter that a first line 'sep=;' names, as Excel writes it."""
    first = lines[0] if lines else ""
    return first[4] if len(first) == 5 and first.startswith("sep=") else None


def _lines_before(lines: Sequence[str]) -> int:
    if _sep_line(lines):
        return 1
    for number, line in enumerate(lines):
        if line and not line.startswith("#"):
            return number
    return 0


def _find_delimiter(lines: Sequence[str], quote: str) -> str:
    """Return the delimiter that cuts most lines into the same number of cells.

    It cuts the line of names so too: a decimal comma cuts rows of numbers as evenly
    as the semicolon between them.
    """
    scores = {}
    for delimiter in (",", ";", "\t", "|"):
        reader = csv.reader(lines[:HEAD_ROWS], delimiter=delimiter, quotechar=quote)
        try:
            rows = [cells for cells in reader if cells]
        except csv.Error:
            continue
        if not rows:
            continue
        usual, count = Counter(map(len, rows)).most_common(1)[0]
        if usual < 2:
            continue
        alike = count / len(rows)
        n_titles = count_titles(rows)
        unnamed = abs(usual - len(rows[n_titles]))
        scores[delimiter] = (alike >= 0.5, -unnamed, -n_titles, alike > 0.9, usual)
    return max(scores, key=lambda d: scores[d], default=",")


# Rows above the names of columns: titles of extracts, dates, and who made them


def count_titles(rows: Sequence[Sequence[str]]) -> int:
    """Return how many rows stand above the one with the names of columns.

    A title fills at most half as many cells as the rows usually do. The names are the
    first row that fills more, and none of them is a number or a date; if one is, nothing
    is a title.

    rows: from the beginning of a table; an empty text is no cell.
    """
    filled = [sum(bool(cell.strip()) for cell in cells) for cells in rows[:HEAD_ROWS]]
    usual = median([count for count in filled if count] or [0])
    for place, count in enumerate(filled[: _MOST_TITLES + 1]):
        if 2 * count > usual:
            return place if all(map(_may_name, rows[place])) else 0
    return 0


def title_warning(n: int, word: str) -> str:
    """Return the sentence on lines or rows that were read as titles."""
    which = (
        f"{word.capitalize()} 1 is" if n == 1 else f"{word.capitalize()}s 1 to {n} are"
    )
    return (
        f"{which} read as a title: the names of columns stand in {word} {n + 1} "
        f"(--csv skip={n})."
    )


def _below_titles(text: str, dialect: Dialect) -> tuple[Dialect, list[str]]:
    head = []
    for record in _records(text, dialect):
        head.append(record)
        if len(head) == HEAD_ROWS:
            break
    n = count_titles([cells for _, cells in head])
    if not n:
        return dialect, []
    skip = (dialect.skip or 0) + head[n - 1][0]
    return replace(dialect, skip=skip), [title_warning(skip, "line")]


def _may_name(cell: str) -> bool:
    return not is_date(cell) and not has_number(cell)


def has_number(cell: str) -> bool:
    """Return whether a cell is a number, with either decimal sign and any minus."""
    return any(is_number(cell, sign) for sign in _SIGNS) or bool(read_minus(cell))


# Copies


def write_rows(
    names: Sequence[str],
    rows: Iterable[Sequence[Any]],
    copy: Path,
    first: int = 1,
    mixed: Collection[int] = (),
) -> list[int]:
    """Write rows as text, one line each; return the numbers of empty ones, left out.

    first: the number of the first row.
    mixed: places of columns whose numbers are written without a decimal sign, as texts
        beside them have signs of their own.
    """
    empty = []
    with copy.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        for number, row in enumerate(rows, first):
            cells = [
                _without_sign(value) if place in mixed else as_text(value)
                for place, value in enumerate(row)
            ]
            if any(cells):
                writer.writerow(cells)
            else:
                empty.append(number)
    return empty


def _without_sign(value: Any) -> str:
    """Return a value as text: 5.125 as 5125e-3, which has one reading alone."""
    text = as_text(value)
    if not isinstance(value, float) or "." not in text:
        return text
    _, digits, exponent = Decimal(text).as_tuple()
    return f"{'-' * (value < 0)}{''.join(map(str, digits))}e{exponent}"


def as_text(value: Any) -> str:
    """Return a value as a text file has it: without loss, on one line."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        return (
            str(int(value))
            if value.is_integer() and abs(value) < 2**53
            else repr(value)
        )
    if isinstance(value, datetime) and not (value.hour or value.minute or value.second):
        value = value.date()
    if isinstance(value, date):
        return value.isoformat()
    return " ".join(str(value).splitlines())
