"""Dates in texts, whichever way they are written."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

_YEAR_FIRST: Final = re.compile(r"(\d{4})[-./ ]?(\d{1,2})[-./ ]?(\d{1,2})(?:[t ].*)?")
_DAY_FIRST: Final = re.compile(r"(\d{1,2})[-./ ]?(\d{1,2})[-./ ]?(\d{4})(?:[t ].*)?")
_EARLIEST, _LATEST = 1800, 2199


class Date(NamedTuple):
    """A day of the calendar."""

    year: int
    month: int
    day: int


FORMS: Final[Mapping[str, Callable[[Date], str]]] = {
    "date": lambda day: f"{day.year:04}-{day.month:02}-{day.day:02}",
    "year": lambda day: f"{day.year:04}",
    "month": lambda day: f"{day.month:02}",
    "day": lambda day: f"{day.day:02}",
    "year-month": lambda day: f"{day.year:04}-{day.month:02}",
    "month-day": lambda day: f"{day.month:02}-{day.day:02}",
}
"""What is left of a date after a step."""


@lru_cache(maxsize=1 << 16)
def read_date(text: str) -> Date | None:
    """Return the date that a text is; None if it is none.

    The year stands first or last. Where it stands last, the day comes before the month
    unless that gives no date.
    """
    found = _YEAR_FIRST.fullmatch(text)
    if found is not None:
        year, month, day = map(int, found.groups())
        if _EARLIEST <= year <= _LATEST:
            return _date(year, month, day)
    found = _DAY_FIRST.fullmatch(text)
    if found is None:
        return None
    day, month, year = map(int, found.groups())
    return _date(year, month, day) or _date(year, day, month)


def _date(year: int, month: int, day: int) -> Date | None:
    try:
        np.datetime64(f"{year:04}-{month:02}-{day:02}", "D")
    except ValueError:
        return None
    return Date(year, month, day) if _EARLIEST <= year <= _LATEST else None
