"""Section 11, match keys: the values of rows under each key."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Final

from .derivations import Refusal
from .ids import apply_steps, parts_of, steps_of

_UNIT: Final = "\x1f"
_YEAR_FIRST: Final = re.compile(r"(\d{4})[-./ ]?(\d\d?)[-./ ]?(\d\d?)(?:[t ].*)?")
_YEAR_LAST: Final = re.compile(r"(\d\d?)[-./ ]?(\d\d?)[-./ ]?(\d{4})(?:[t ].*)?")
_FORMS: Final = {
    "date": "{0:04}-{1:02}-{2:02}",
    "year": "{0:04}",
    "month": "{1:02}",
    "day": "{2:02}",
    "year-month": "{0:04}-{1:02}",
    "month-day": "{1:02}-{2:02}",
}
_OF_OTHERS: Final = ("transliterate", "soundex", "metaphone", "cologne")
Part = tuple[tuple[str, ...], tuple[str, ...]]


def read_key(text: str) -> list[Part]:
    """Section 11, match keys: parts, each with its columns and steps."""
    found = []
    for part in text.split("+"):
        columns, *steps = (each.strip() for each in part.split("|"))
        if set(steps) & set(_OF_OTHERS):
            raise Refusal("guard-refused")
        names = tuple(name.strip() for name in columns.split(","))
        found.append((names, tuple(steps)))
    return found


def columns_of(keys: Sequence[str]) -> list[str]:
    """Section 11, match keys: the columns that keys name, each once."""
    named = (c for key in keys for columns, _ in read_key(key) for c in columns)
    return list(dict.fromkeys(named))


def find_values(
    ids: Sequence[str] | None, alignment: Mapping[str, Any]
) -> list[list[str | None]]:
    """Section 11, match keys: the values of rows, key by key, if enough are alone."""
    keys, least = alignment["match_keys"], alignment.get("key_uniqueness", 0.8)
    columns = columns_of(keys)
    rows = [parts_of(name) for name in ids or ()]
    if ids is None or any(len(row) != len(columns) for row in rows):
        raise Refusal("invalid-data")
    steps = steps_of(alignment)
    cells = [
        {
            c: _without_units(apply_steps(t, steps))
            for c, t in zip(columns, r, strict=True)
        }
        for r in rows
    ]
    found = []
    for key in keys:
        values = [_join(read_key(key), row) for row in cells]
        counted = Counter(value for value in values if value is not None)
        alone = [v if v is not None and counted[v] == 1 else None for v in values]
        kept = sum(value is not None for value in alone)
        if counted and kept / counted.total() < least:
            raise Refusal("invalid-data")
        found.append(alone)
    return found


def _without_units(text: str) -> str:
    """Section 11, match keys: U+001F has become a blank."""
    return text.replace(_UNIT, " ")


def _join(parts: Sequence[Part], row: Mapping[str, str]) -> str | None:
    """Section 11, match keys: the value of a row, 2 to 4."""
    texts = []
    for columns, steps in parts:
        cells = [row[name] for name in columns]
        text = " ".join(cells) if all(cells) else ""
        for step in steps:
            text = _apply(text, step)
        texts.append(_without_units(text))
    return _UNIT.join(texts) if all(texts) else None


def _apply(text: str, step: str) -> str:
    """Section 11, match keys: what a step makes of a text."""
    if step in _FORMS:
        found = _read_date(text)
        return "" if found is None else _FORMS[step].format(*found)
    if step.startswith("first:"):
        return text[: int(step.removeprefix("first:"))]
    if step == "sorted-names":
        return " ".join(sorted("".join(map(_or_blank, text)).split(" "))).strip(" ")
    return apply_steps(text, [step])


def _or_blank(character: str) -> str:
    """Section 11, match keys: a letter or number of a name; a blank for all else."""
    category = unicodedata.category(character)
    return character if category[0] == "L" or category in {"Nl", "No"} else " "


def _read_date(text: str) -> tuple[int, int, int] | None:
    """Section 11, match keys: year, month and day of a date."""
    if found := _YEAR_FIRST.fullmatch(text):
        year, month, day = map(int, found.groups())
        if 1800 <= year <= 2199:
            return _check(year, month, day)
    if found := _YEAR_LAST.fullmatch(text):
        day, month, year = map(int, found.groups())
        return _check(year, month, day) or _check(year, day, month)
    return None


def _check(year: int, month: int, day: int) -> tuple[int, int, int] | None:
    """Section 11, match keys: a day that the calendar has."""
    try:
        date(year, month, day)
    except ValueError:
        return None
    return (year, month, day) if 1800 <= year <= 2199 else None
