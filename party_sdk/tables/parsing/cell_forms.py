"""Cells as people write them: thousands apart, days first, and below a limit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta
from functools import cache
from typing import Final, NamedTuple

_SPACES: Final = " \u00a0\u2009\u202f"
_SIGNS: Final = {" ": f"[{_SPACES}]", "'": "['\u2019]", ".": r"\.", ",": ","}
_OTHER: Final = {".": ",", ",": "."}
_LIMIT: Final = re.compile(r"([<>\u2264\u2265]=?)\s*(\S.*)")
_YEAR_FIRST: Final = re.compile(r"(\d{4})([./-])(\d{1,2})\2(\d{1,2})(?:[ T].*)?")
_YEAR_LAST: Final = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})(?:[ T].*)?")
_SERIAL: Final = re.compile(r"(\d{1,7})(?:[.,]\d+)?")
_EXCEL_BEGINS: Final = date(1899, 12, 30)
_EXCEL_LEAPS: Final = 61
"""Days before are counted wrongly: Excel has a 29 February 1900."""


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
