"""What the cells of a column may stand for: levels, units, and no value at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from typing import Final

import numpy as np

from clustering_protocols.shared_stages.statistics.conversions import CONVERSIONS
from clustering_protocols.terms.schema import Field
from party_sdk.tables.codes import lone_values
from party_sdk.tables.columns import Column, number_of
from party_sdk.tables.proposals.known_words import fold, meaning_of_level, means_nothing
from party_sdk.tables.proposals.proposal import Certainty, LevelProposal

_NEAR: Final = 0.75


def match_cells(
    field: Field,
    counts: Mapping[str, int],
    labels: Mapping[float, str],
    decimal: str,
) -> Iterator[LevelProposal]:
    """Yield what each text of a column stands for, where that has to be said.

    counts: of each text that occurs and is no known code of a missing value.
    labels: of the numbers in a file of a study.
    decimal: the decimal sign of the file.
    """
    if field.is_category or field.type == "boolean":
        for text, count in sorted(counts.items(), key=lambda each: -each[1]):
            yield _match_level(field, text, count, labels)
    elif field.type != "date":
        yield from _match_codes(counts, decimal)


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


def _match_codes(counts: Mapping[str, int], decimal: str) -> Iterator[LevelProposal]:
    """Yield the texts of a column of numbers that are none, and codes among these."""
    values: dict[float, tuple[str, int]] = {}
    for text, count in counts.items():
        pointed = text.replace(",", ".") if decimal == "," else text
        value = number_of(pointed)
        if value is None:
            empty = means_nothing(text)
            yield LevelProposal(
                text=text,
                count=count,
                is_missing=empty,
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
