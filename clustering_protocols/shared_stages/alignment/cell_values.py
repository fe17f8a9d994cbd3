"""Recognition of dates, and of stand-ins for missing values (``unknown``, 1900-01-01).

If two parties used the same stand-in, records of unrelated people would be linked. Each
party recognises the stand-ins in its own table; nothing about them is sent.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from clustering_protocols.shared_stages.alignment.identifiers import split_id

_SPELLINGS: Final = (
    "k.a.|ka|k.a|keine angabe|unbekannt|unbek.|fehlend|fehlt|nicht bekannt|entfällt|-"
    "|--|.|..|?|??|n/a|na|<na>|n.a.|n.a|nd|n.d.|none|null|nil|nan|nat|unk|unknown"
    "|not known|missing|not available|not done|inconnu|inconnue|non connu|manquant|nc"
    "|desconocido|no consta|sin dato|sconosciuto|non noto|onbekend|niet bekend|#n/a"
    "|#null!|#wert!|#value!|#n/a!|#div/0!|#ref!|#name?|#num!|#novalue"
)
_WORDS: Final = frozenset(_SPELLINGS.split("|"))

_MOST_STAND_INS: Final = 3
_LEAST_ROWS, _LEAST_RATIO = 4, 3
_UNIQUE_SHARE: Final = 0.9
# Names contain none of these: a name may be frequent and still be a genuine value.
_NOT_IN_NAMES: Final = re.compile(r"[\d@]")


def is_missing_word(text: str) -> bool:
    """Return whether the text is a word or symbol that denotes a missing value."""
    return " ".join(text.casefold().split()) in _WORDS


def rows_without_id(ids: Sequence[str]) -> list[int]:
    """Return the numbers of the rows whose id, or a part of it, denotes a missing value.

    An id that consists of zeros (``00000000``) also counts as missing, unless another
    id of the same length begins with all but two of those zeros: such ids are
    consecutive numbers that start at zero.
    """
    zeros = {name for name in ids if len(name) > 1 and not name.strip("0")}
    stand_ins = {
        zero
        for zero in zeros
        if not any(
            len(name) == len(zero) and name.startswith(zero[2:]) and name != zero
            for name in ids
        )
    }
    return [
        row
        for row, name in enumerate(ids)
        if name in stand_ins or any(map(is_missing_word, split_id(name)))
    ]


def missing_ids_note(ids: Sequence[str] | None) -> str:
    """Return a warning about rows whose id denotes a missing value; empty if none do."""
    n = 0 if ids is None else len(rows_without_id(ids))
    if not n:
        return ""
    return (
        f"{n:,} {'row has an id that stands' if n == 1 else 'rows have ids that stand'} "
        "for a missing one, such as 'unknown' or 0000: they are linked to nobody."
    )


def blank_out_stand_ins(texts: Sequence[str]) -> list[str]:
    """Return the cells of a column, with every stand-in replaced by an empty string."""
    stand_ins = find_frequent_stand_ins(texts)
    stand_ins |= {text for text in set(texts) if is_missing_word(text)}
    return ["" if text in stand_ins else text for text in texts]


def find_frequent_stand_ins(texts: Iterable[str]) -> frozenset[str]:
    """Return up to three values of a column that are far more frequent than all others.

    Each of them must occur in at least four rows, and more than three times as often as
    the most frequent of the other values. Together they may fill at most half of the
    nonempty rows. A value that is not a date must contain a digit or an at sign, and nearly
    all others must be unique, because values such as postcodes repeat naturally.
    """
    counts = Counter(filter(None, texts)).most_common()
    for n in range(min(_MOST_STAND_INS, len(counts) - 1), 0, -1):
        frequent, rare = counts[:n], counts[n:]
        n_rare = sum(count for _, count in rare)
        stands_out = frequent[-1][1] >= max(_LEAST_ROWS, _LEAST_RATIO * rare[0][1] + 1)
        if not stands_out or sum(count for _, count in frequent) > n_rare:
            continue
        n_unique = sum(count == 1 for _, count in rare)
        if all(
            parse_date(text) is not None
            or (_NOT_IN_NAMES.search(text) and n_unique >= _UNIQUE_SHARE * n_rare)
            for text, _ in frequent
        ):
            return frozenset(text for text, _ in frequent)
    return frozenset()


_YEAR_FIRST: Final = re.compile(r"(\d{4})[-./ ]?(\d{1,2})[-./ ]?(\d{1,2})(?:[t ].*)?")
_DAY_FIRST: Final = re.compile(r"(\d{1,2})[-./ ]?(\d{1,2})[-./ ]?(\d{4})(?:[t ].*)?")
_EARLIEST, _LATEST = 1800, 2199


DATE_PARTS: Final[Mapping[str, slice]] = {
    "date": slice(0, 10),
    "year": slice(0, 4),
    "month": slice(5, 7),
    "day": slice(8, 10),
    "year-month": slice(0, 7),
    "month-day": slice(5, 10),
}
"""For each date step of a match key, the characters that it takes from 2026-01-31."""


@lru_cache(maxsize=1 << 16)
def parse_date(text: str) -> str | None:
    """Return a date in the form 2026-01-31; None unless it is between 1800 and 2199.

    The text is read as year, month, day, or as day, month, year, or as month, day,
    year, in the first of these orders that gives a valid date.
    """
    date = None
    if match := _YEAR_FIRST.fullmatch(text):
        date = _build_date(*map(int, match.groups()))
    if date is None and (match := _DAY_FIRST.fullmatch(text)):
        day, month, year = map(int, match.groups())
        date = _build_date(year, month, day) or _build_date(year, day, month)
    return date


def _build_date(year: int, month: int, day: int) -> str | None:
    text = f"{year:04}-{month:02}-{day:02}"
    try:
        np.datetime64(text, "D")
    except ValueError:
        return None
    return text if _EARLIEST <= year <= _LATEST else None
