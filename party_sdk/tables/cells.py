"""What texts in cells are: numbers, dates, limits, and the kind of a column of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from functools import cache
from typing import Final, Literal, NamedTuple, TypeAlias

from party_sdk.tables.dialect import Dialect
from party_sdk.tables.report import form

Kind: TypeAlias = Literal["number", "integer", "boolean", "date", "words", "nothing"]

_INTEGER: Final = re.compile(r"[+-]?\d+")
_NUMBERS: Final = {
    ".": re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"),
    ",": re.compile(r"[+-]?(?:\d+(?:,\d*)?|,\d+)(?:[eE][+-]?\d+)?"),
}
_IN_THOUSANDS: Final = re.compile(
    r"[+-]?\d{1,3}([.,' \u00a0\u202f])\d{3}(\1\d{3})*([.,]\d+)?"
)
SEPARATED: Final = "thousands are written without separators"
_CODE: Final = re.compile(r"0\d+")
_BEGINS: Final = re.compile(r"[+-]?\d")
_INFINITE: Final = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_DATE: Final = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}(?:[ T]\d{1,2}:\d{2}(?::\d{2}(?:\.\d*)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
    r"|\d{1,2}([./-])\d{1,2}\1\d{2,4}"
)
BOOLEANS: Final = {
    "true": 1.0, "false": 0.0, "t": 1.0, "f": 0.0,
    "wahr": 1.0, "falsch": 0.0, "vrai": 1.0, "faux": 0.0,
}  # fmt: skip
"""Spellings that are yes or no in any column."""
_SPACES: Final = " \u00a0\u2009\u202f"
_SIGNS: Final = {" ": f"[{_SPACES}]", "'": "['\u2019]", ".": r"\.", ",": ","}
_OTHER: Final = {".": ",", ",": "."}
_LIMIT: Final = re.compile(r"([<>\u2264\u2265]=?)\s*(\S.*)")
_YEAR_FIRST: Final = re.compile(r"(\d{4})([./-])(\d{1,2})\2(\d{1,2})(?:[ T].*)?")
_YEAR_LAST: Final = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?:[ T].*)?")
_SERIAL: Final = re.compile(r"(\d{1,7})(?:[.,]\d+)?")
SHORT_YEAR: Final = re.compile(r"0{0,2}\d{1,2}([./-])\d{1,2}\1\d{1,2}")
_EXCEL_BEGINS: Final = date(1899, 12, 30)
_EXCEL_LEAPS: Final = 61
"""Days before are counted wrongly: Excel has a 29 February 1900."""


def guess(cells: Iterable[str], dialect: Dialect) -> Kind:
    """Return the kind of most cells: single ones that differ are for the operator."""
    values = [cell.strip() for cell in cells]
    codes = dialect.codes
    given = [value for value in values if value not in codes]
    if not given:
        return "nothing"
    if all(value.lower() in BOOLEANS for value in given):
        return "boolean"
    number = _NUMBERS[dialect.decimal or "."]
    numbers = [v for v in given if number.fullmatch(v) or _INFINITE.fullmatch(v)]
    if 2 * len(numbers) > len(given) or (numbers and len(given) < 3):
        whole = all(_INTEGER.fullmatch(value) for value in numbers)
        return "integer" if whole else "number"
    if 2 * sum(map(is_date, given)) > len(given):
        return "date"
    return "words"


def columns_of(rows: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """Return the cells of each column; ragged rows are left out."""
    whole = [cells for cells in rows if len(cells) == width]
    return [[cells[index] for cells in whole] for index in range(width)]


def in_thousands(cells: Iterable[str], dialect: Dialect) -> bool:
    """Return whether cells that are no numbers are such with separators of thousands."""
    values = {cell.strip() for cell in cells} - dialect.codes
    return bool(values) and all(
        is_number(value, dialect) or _IN_THOUSANDS.fullmatch(value) for value in values
    )


def column_warnings(
    names: Sequence[str],
    kinds: Sequence[Kind],
    cells: Sequence[Sequence[str]],
    dialect: Dialect,
) -> Iterator[str]:
    """Yield what an operator should know of words that look like numbers, and of codes."""
    for name, kind, column in zip(names, kinds, cells, strict=True):
        if kind == "integer" and any(_CODE.fullmatch(cell.strip()) for cell in column):
            yield f"{name!r}: numbers that begin with 0, perhaps codes: read as numbers."
        if kind != "words":
            continue
        if in_thousands(column, dialect):
            yield f"{name!r}: {SEPARATED}; a mapping reads them (thousands = …)."
        elif found := _unread_number(column, dialect):
            what = "is neither a number nor a date such as 2026-01-31"
            yield f"{name!r}: {form(found)!r} {what}."


def _unread_number(cells: Iterable[str], dialect: Dialect) -> str | None:
    """Return a cell of a column whose cells mostly begin with a digit."""
    given = [value for cell in cells if (value := cell.strip()) not in dialect.codes]
    begun = [value for value in given if _BEGINS.match(value)]
    return begun[0] if 2 * len(begun) > len(given) else None


def comma_warnings(cells: Sequence[Sequence[str]], dialect: Dialect) -> list[str]:
    """Say that a decimal comma may be a separator of thousands."""
    sign = dialect.decimal or "."
    if sign == ".":
        return []
    fractions = [
        cell.partition(sign)[2]
        for column in cells
        for cell in column
        if sign in cell and is_number(cell, dialect)
    ]
    if fractions and all(len(part) == 3 for part in fractions):
        what = "Every number with a comma has three digits behind it"
        return [f"{what}: read as a decimal comma (--csv decimal=.)."]
    return []


def is_date(cell: str) -> bool:
    """Return whether a cell looks like a date."""
    return _DATE.fullmatch(cell.strip()) is not None


def is_number(cell: str, dialect: Dialect) -> bool:
    """Return whether a cell is a number as the dialect writes it."""
    return _NUMBERS[dialect.decimal or "."].fullmatch(cell.strip()) is not None


# Forms that a mapping reads


class LimitCell(NamedTuple):
    """A value of which only a limit is known.

    is_below: whether the value lies below it, and not above.
    limit: the limit as it is written.
    """

    is_below: bool
    limit: str


def split_limit(text: str) -> LimitCell | None:
    """Return what a cell such as ``<0.1`` says; None of any other."""
    found = _LIMIT.fullmatch(text.strip())
    if found is None:
        return None
    return LimitCell(found[1][0] in "<\u2264", found[2].strip())


def read_number(text: str, decimal: str | None, thousands: str | None) -> str | None:
    """Return a number with a point and without separators; None if it is written else.

    decimal: by default what ``thousands`` leaves; a point or a comma beside blanks.
    """
    found = _number_form(decimal, thousands).fullmatch(text.strip())
    if found is None:
        return None
    sign, whole, fraction, power = found.groups()
    digits = re.sub(r"\D", "", whole)
    return f"{sign}{digits}{f'.{fraction}' if fraction else ''}{power or ''}"


@cache
def _number_form(decimal: str | None, thousands: str | None) -> re.Pattern[str]:
    point = "[.,]"
    if decimal is not None:
        point = _SIGNS[decimal]
    elif thousands in _OTHER:
        point = _SIGNS[_OTHER[thousands]]
    whole = r"\d+"
    if thousands is not None:
        whole = rf"\d{{1,3}}(?:{_SIGNS[thousands]}\d{{3}})+|\d+"
    return re.compile(rf"([+-]?)({whole})(?:{point}(\d*))?([eE][+-]?\d+)?")


def read_date(text: str, orders: Sequence[str]) -> str | None:
    """Return a date with the year first; None if it is written in no such order."""
    clean = text.strip()
    for order in orders:
        found = _in_order(clean, order)
        if found is not None:
            return found
    return None


def _in_order(text: str, order: str) -> str | None:
    if order == "excel":
        serial = _SERIAL.fullmatch(text)
        days = 0 if serial is None else int(serial[1])
        if days < _EXCEL_LEAPS or days > 2_958_465:  # 9999-12-31
            return None
        return (_EXCEL_BEGINS + timedelta(days=days)).isoformat()
    found = (_YEAR_FIRST if order == "year-first" else _YEAR_LAST).fullmatch(text)
    if found is None:
        return None
    if order == "year-first":
        year, month, day = found[1], found[3], found[4]
    else:
        year = found[4]
        day, month = (found[1], found[3])[:: 1 if order == "day-first" else -1]
    try:
        return date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return None
