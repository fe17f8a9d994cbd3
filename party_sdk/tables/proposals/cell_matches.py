"""What the cells of a column may stand for: levels, units, and no value at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

import numpy as np

from clustering_protocols.shared_stages.statistics.conversions import CONVERSIONS
from clustering_protocols.terms.schema import Field
from party_sdk.tables.codes import lone_values
from party_sdk.tables.columns import Column, number_of
from party_sdk.tables.mapping.model import DateOrder, Thousands
from party_sdk.tables.parsing.cell_forms import read_date, read_number, split_limit
from party_sdk.tables.proposals.known_words import fold, meaning_of_level, means_nothing
from party_sdk.tables.proposals.proposal import Certainty, LevelProposal

_NEAR: Final = 0.75
_THOUSANDS: Final[tuple[Thousands, ...]] = (",", ".", " ", "'")
_WITH_THE_YEAR_LAST: Final[tuple[DateOrder, ...]] = ("day-first", "month-first")


def match_cells(
    field: Field,
    counts: Mapping[str, int],
    labels: Mapping[float, str],
    decimal: str,
    thousands: str | None = None,
) -> Iterator[LevelProposal]:
    """Yield what each text of a column stands for, where that has to be said.

    counts: of each text that occurs and is no known code of a missing value.
    labels: of the numbers in a file of a study.
    decimal: the decimal sign of the file.
    thousands: what parts thousands in this column.
    """
    if field.is_category or field.type == "boolean":
        for text, count in sorted(counts.items(), key=lambda each: -each[1]):
            yield _match_level(field, text, count, labels)
    elif field.type != "date":
        yield from _match_codes(counts, decimal, thousands)
    else:
        yield from _match_none(counts)


def _match_level(
    field: Field, text: str, count: int, labels: Mapping[float, str]
) -> LevelProposal:
    spellings = Column(field.name, "words", field).spellings or {}
    if text in spellings or (field.type == "boolean" and text.lower() in spellings):
        return LevelProposal(
            text=text,
            count=count,
            level=text,
            is_same=True,
            certainty=Certainty.CERTAIN,
        )
    value = number_of(text)
    said = text if value is None else labels.get(value, text)
    known = dict(zip(field.levels, field.labels, strict=True)) or {
        "yes": "yes",
        "no": "no",
    }
    level, certainty = _find_level(known, said)
    if level is None and means_nothing(said):
        return LevelProposal(
            text=text, count=count, is_missing=True, certainty=Certainty.GUESS
        )
    return LevelProposal(text=text, count=count, level=level, certainty=certainty)


def _find_level(known: Mapping[str, str], text: str) -> tuple[str | None, Certainty]:
    """Return the level that a text stands for, and how certain that is."""
    own = fold(text)
    same = [lv for lv, label in known.items() if own and own in {fold(lv), fold(label)}]
    if len(same) == 1:
        return same[0], Certainty.CERTAIN
    meant = meaning_of_level(text)
    if meant is not None:
        same = [
            level
            for level, label in known.items()
            if meant in {meaning_of_level(level), meaning_of_level(label)}
        ]
        if len(same) == 1:
            short = len(own) == 1
            return same[0], Certainty.GUESS if short else Certainty.CERTAIN
    if len(own) == 1:
        same = [level for level in known if fold(level).startswith(own)]
        if len(same) == 1:
            return same[0], Certainty.GUESS
    near = {
        level: max(
            SequenceMatcher(None, own, fold(each), autojunk=False).ratio()
            for each in (level, label)
        )
        for level, label in known.items()
    }
    best = max(near, key=lambda level: near[level], default=None)
    if best is not None and near[best] >= _NEAR and len(own) > 2:
        return best, Certainty.GUESS
    return None, Certainty.OPEN


def _match_codes(
    counts: Mapping[str, int], decimal: str, thousands: str | None
) -> Iterator[LevelProposal]:
    """Yield the texts of a column of numbers that are none, and codes among these."""
    values: dict[float, tuple[str, int]] = {}
    for text, count in counts.items():
        value = _number_in(text, decimal)
        if thousands is not None and (own := read_number(text, None, thousands)):
            value = number_of(own)
        if value is None:
            empty = means_nothing(text)
            yield LevelProposal(
                text=text,
                count=count,
                is_missing=empty,
                is_limit=split_limit(text) is not None,
                certainty=Certainty.GUESS if empty else Certainty.OPEN,
            )
        elif np.isfinite(value):
            values[value] = text, count
    numbers = np.repeat(list(values), [min(count, 50) for _, count in values.values()])
    for found in lone_values(numbers):
        text, count = values[found.value]
        yield LevelProposal(
            text=text, count=count, is_missing=True, certainty=Certainty.GUESS
        )


def _match_none(counts: Mapping[str, int]) -> Iterator[LevelProposal]:
    """Yield the texts of a column of dates that say that there is none."""
    for text, count in counts.items():
        if means_nothing(text):
            yield LevelProposal(
                text=text, count=count, is_missing=True, certainty=Certainty.GUESS
            )


@dataclass(frozen=True, slots=True)
class FormProposal:
    """How a column writes its numbers or dates, where that is not how its file does."""

    thousands: Thousands | None = None
    dates: tuple[DateOrder, ...] = ()


def find_forms(
    field: Field, counts: Mapping[str, int], decimal: str, order: str
) -> FormProposal:
    """Return how the texts of a column are written, where all of them show it."""
    if field.is_category or field.type == "boolean":
        return FormProposal()
    if field.type == "date":
        return FormProposal(dates=_find_orders(list(counts), order))
    signs: Sequence[Thousands] = (".", " ", "'") if decimal == "," else _THOUSANDS
    plain = [text for text in counts if split_limit(text) is None]
    wrong = [text for text in plain if _number_in(text, decimal) is None]
    for sign in signs:
        read = [read_number(text, None, sign) for text in wrong]
        if wrong and sum(each is not None for each in read) > len(read) / 2:
            return FormProposal(thousands=sign)
    return FormProposal()


def _number_in(text: str, decimal: str) -> float | None:
    return number_of(text.replace(",", ".") if decimal == "," else text)


def _find_orders(given: Sequence[str], order: str) -> tuple[DateOrder, ...]:
    """Return the orders of dates that read most texts, if the file's does not read all."""
    if not given or all(read_date(text, (order,)) for text in given):
        return ()
    for usual in _WITH_THE_YEAR_LAST:
        orders: tuple[DateOrder, ...] = (usual, "year-first", "excel")
        if sum(read_date(text, orders) is not None for text in given) > len(given) / 2:
            return tuple(
                order
                for order in orders
                if any(read_date(text, (order,)) for text in given)
            )
    return ()


def find_unit(field: Field, name: str, title: str) -> str:
    """Return the conversion from the unit that a column names to the field's, if any."""
    if not field.is_measured:
        return ""
    wanted = _fold_unit(field.unit) or _unit_in(field.title)
    about = f"{name} {title} {field.name} {field.title}"
    here = f"{name} {title}"
    for each in CONVERSIONS:
        if not each.quantity or not each.is_named(about):
            continue
        if _fold_unit(each.second) != wanted:
            continue
        if _speaks_of(here, each.first) and not _speaks_of(here, each.second):
            return each.name
    return ""


def _unit_in(title: str) -> str:
    """Return the unit in the brackets of a title."""
    found = re.findall(r"[(\[]([^()\[\]]+)[)\]]", title)
    return _fold_unit(found[-1]) if found else ""


def _fold_unit(unit: str) -> str:
    folded = unit.casefold().replace("µ", "u").replace("μ", "u")
    return re.sub(r"[\s_.]+", "", folded)


def _speaks_of(text: str, unit: str) -> bool:
    """Return whether a text names a unit, and no other one that holds its letters."""
    folded = text.casefold().replace("µ", "u").replace("μ", "u")
    wanted = re.escape(unit.casefold().replace("µ", "u").replace("μ", "u"))
    loose = wanted.replace("/", r"[/_ ]?(?:per|pro)?[_ ]?")
    return re.search(rf"(?<![a-z/]){loose}(?![a-z/])", folded) is not None
