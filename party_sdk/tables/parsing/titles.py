"""Rows above the names of columns: titles of extracts, dates, and who made them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Final

from party_sdk.tables.parsing.column_kinds import is_date, is_number
from party_sdk.tables.parsing.dialect import Dialect, lines_of, whole_rows

LOOKED_AT: Final = 200
_MOST_TITLES: Final = 30
_SIGNS: Final = (Dialect(decimal="."), Dialect(decimal=","))


def n_titles(rows: Sequence[Sequence[str]]) -> int:
    """Return how many rows stand above the one with the names of columns.

    A title fills at most half as many cells as the rows usually do. The names are the
    first row that fills more, and none of them is a number or a date; if one is, nothing
    is a title.

    rows: from the beginning of a table; an empty text is no cell.
    """
    filled = [sum(bool(cell.strip()) for cell in cells) for cells in rows[:LOOKED_AT]]
    usual = median([count for count in filled if count] or [0])
    for place, count in enumerate(filled[: _MOST_TITLES + 1]):
        if 2 * count > usual:
            return place if all(map(_may_name, rows[place])) else 0
    return 0


def below_titles(text: str, found: Dialect) -> tuple[Dialect, list[str]]:
    """Return a dialect that skips the titles of a text too, and what is said of them.

    text: whole lines from the beginning of a file.
    found: with the lines to skip that are empty or comments.
    """
    skip = found.skip or 0
    reader = csv.reader(
        lines_of(text)[skip:], delimiter=found.delimiter or ",", quotechar=found.quote
    )
    rows, ends = [], [0]
    for cells in whole_rows(reader):
        rows.append(cells)
        ends.append(reader.line_num)
        if len(rows) == LOOKED_AT:
            break
    n = n_titles(rows)
    if not n:
        return found, []
    skip += ends[n]
    return replace(found, skip=skip), [told_titles(skip, "line")]


def told_titles(n: int, word: str) -> str:
    """Return the sentence on rows that were read as titles."""
    which = (
        f"{word.capitalize()} 1 is" if n == 1 else f"{word.capitalize()}s 1 to {n} are"
    )
    return (
        f"{which} read as a title: the names of columns stand in {word} {n + 1} "
        f"(--csv skip={n})."
    )


def _may_name(cell: str) -> bool:
    return not is_date(cell) and not any(is_number(cell, sign) for sign in _SIGNS)
