"""How a text file is written is found in its beginning."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from party_sdk.tables.parsing.dialect import Dialect, lines_of, records
from party_sdk.tables.parsing.titles import n_titles

_POINT: Final = re.compile(r"[+-]?\d+\.\d+(?:[eE][+-]?\d+)?")
_COMMA: Final = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
_SHORT_DATE: Final = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})")


def detect(text: str, said: Dialect) -> Dialect:
    """Return how a text is written, by its beginning; what is said stays.

    text: whole lines from the beginning of a file.
    """
    lines = [line.rstrip("\n") for line in lines_of(text)]
    skip = _lines_before(lines) if said.skip is None else said.skip
    delimiter = (
        said.delimiter or _read_sep_line(lines) or _delimiter(lines[skip:], said.quote)
    )
    found = replace(said, skip=skip, delimiter=delimiter)
    if said.decimal is None:
        found = replace(found, decimal=decimal_sign(records(text, found)))
    return _with_dates(found, records(text, found))


def _read_sep_line(lines: Sequence[str]) -> str | None:
    """Return the delimiter that a first line 'sep=;' names, as Excel writes it."""
    first = lines[0] if lines else ""
    return first[4] if len(first) == 5 and first.startswith("sep=") else None


def _lines_before(lines: Sequence[str]) -> int:
    if _read_sep_line(lines):
        return 1
    for number, line in enumerate(lines):
        if line and not line.startswith("#"):
            return number
    return 0


def _delimiter(lines: Sequence[str], quote: str) -> str:
    """Return the delimiter that cuts most lines into the same number of cells.

    It cuts the line of names so too: a decimal comma cuts rows of numbers as evenly
    as the semicolon between them.
    """
    scores = {}
    for delimiter in (",", ";", "\t", "|"):
        reader = csv.reader(lines[:200], delimiter=delimiter, quotechar=quote)
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
        unnamed = abs(usual - len(rows[n_titles(rows)]))
        scores[delimiter] = (alike >= 0.5, -unnamed, alike > 0.9, usual)
    return max(scores, key=lambda d: scores[d], default=",")


def decimal_sign(rows: Sequence[Sequence[str]]) -> str:
    """Return which sign more numbers with a fraction have, below the first row."""
    counted: Counter[str] = Counter()
    for cells in rows[1:]:
        for cell in cells:
            counted["."] += _POINT.fullmatch(cell.strip()) is not None
            counted[","] += _COMMA.fullmatch(cell.strip()) is not None
    return "," if counted[","] > counted["."] else "."


def _with_dates(said: Dialect, rows: Sequence[Sequence[str]]) -> Dialect:
    """Say in which order dates are written, where the beginning of the file shows it.

    1.2.2026 is the first of February wherever points are used; of 1/2/2026 nobody knows.
    """
    dates = [
        found
        for cells in rows[1:]
        for cell in cells
        if (found := _SHORT_DATE.fullmatch(cell.strip()))
    ]
    if not dates:
        return said
    between = dates[0][2]
    order = said.dates
    if order is None and between == ".":
        order = "day-first"
    if order is None:
        day_first = any(int(found[1]) > 12 for found in dates)
        month_first = any(int(found[3]) > 12 for found in dates)
        if day_first != month_first:
            order = "day-first" if day_first else "month-first"
    return replace(said, dates=order, between=between)
