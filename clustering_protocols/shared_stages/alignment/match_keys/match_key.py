"""A match key: columns, and the steps that bring each of them into one form.

A key is a text, so that terms, options and forms show it alike::

    given_name, surname | sorted-names + birth_date | year

Parts stand between ``+``. A part is one column or several, and steps behind ``|``.
Cells of several columns are joined by a blank.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Final, NamedTuple

from pydantic import AfterValidator, StringConstraints

from clustering_protocols.common.limits import CONTROLS
from clustering_protocols.terms.schema import normal

STEP: Final = re.compile(
    r"no-punctuation|digits|strip-zeros|zero-pad:[1-9][0-9]?|first:[1-9][0-9]?"
    r"|transliterate|date|year|month|day|year-month|month-day|sorted-names"
    r"|soundex|metaphone|cologne"
)
_MOST_PARTS, _MOST_CHARACTERS = 8, 400


class KeyPart(NamedTuple):
    """Some columns of a key, and the steps through which their text goes, in order."""

    columns: tuple[str, ...]
    steps: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " | ".join([", ".join(self.columns), *self.steps])


def read_match_key(text: str) -> tuple[KeyPart, ...]:
    """Return the parts of a match key.

    Raises ValueError: with the part that cannot be read.
    """
    parts = tuple(_read_part(part) for part in text.split("+"))
    if len(parts) > _MOST_PARTS:
        raise ValueError(f"a match key has {_MOST_PARTS} parts at most")
    if len(set(parts)) < len(parts):
        raise ValueError("a match key has each part once")
    return parts


def _read_part(text: str) -> KeyPart:
    said, *steps = (each.strip() for each in text.split("|"))
    columns = tuple(normal(name) for name in said.split(","))
    if not all(columns):
        raise ValueError(f"{text.strip()!r} names no column")
    if unknown := [step for step in steps if not STEP.fullmatch(step)]:
        raise ValueError(f"{unknown[0]!r} is no step of a match key")
    return KeyPart(columns, tuple(steps))


def _as_written(text: str) -> str:
    return " + ".join(map(str, read_match_key(text)))


MatchKey = Annotated[
    str,
    StringConstraints(pattern=rf"^[^{CONTROLS}]+$", max_length=_MOST_CHARACTERS),
    AfterValidator(_as_written),
]
"""The text of a match key, in one spelling."""


def columns_of(keys: Iterable[str]) -> tuple[str, ...]:
    """Return the columns that keys name, each once, in their order."""
    named = (c for key in keys for part in read_match_key(key) for c in part.columns)
    return tuple(dict.fromkeys(named))
