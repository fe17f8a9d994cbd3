"""Which column of a table may be a field of a dictionary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from clustering_protocols.terms.schema import Field
from party_sdk.tables.proposals.known_words import fold, fold_words, meanings_of_column
from party_sdk.tables.proposals.proposal import Certainty

_NEAR: Final = 0.75
MOST_COLUMNS: Final = 2_000
"""Names of more columns are compared as they are, and by no spelling."""


@dataclass(frozen=True, slots=True)
class ColumnMatch:
    """How near a column of a table is to a field: from 0 to 1, and why."""

    score: float
    certainty: Certainty
    why: str


_NONE: Final = ColumnMatch(0.0, Certainty.OPEN, "")


def compare(field: Field, name: str, title: str) -> ColumnMatch:
    """Return how near a column of this name and title is to a field."""
    if name == field.name:
        return ColumnMatch(1.0, Certainty.CERTAIN, "the same name")
    own, other = fold(field.name), fold(name)
    if own and own == other:
        why = "the same name but for case, accents and signs"
        return ColumnMatch(0.99, Certainty.CERTAIN, why)
    if field.title and fold(field.title) in {other, fold(title)} - {""}:
        return ColumnMatch(0.98, Certainty.CERTAIN, "its title")
    meant = meanings_of_column(field.name) | meanings_of_column(field.title)
    if meant & meanings_of_column(name):
        return ColumnMatch(0.9, Certainty.GUESS, "the same word in another language")
    if (
        field.type == "date"
        and own
        and other in {f"{own}date", f"date{own}", f"{own}datum"}
    ):
        return ColumnMatch(0.9, Certainty.GUESS, "its name with 'date'")
    if own and own in fold_words(title):
        return ColumnMatch(0.85, Certainty.GUESS, "its title speaks of it")
    near = max(_alike(own, other), _alike(fold(field.title), other))
    if near >= _NEAR:
        return ColumnMatch(0.8 * near, Certainty.GUESS, "its spelling")
    if fold_words(field.title) & fold_words(name) - {"of", "at", "the", "in"}:
        return ColumnMatch(0.5, Certainty.GUESS, "a word of its title")
    return ColumnMatch(0.5 * near, Certainty.OPEN, "")


def _alike(one: str, other: str) -> float:
    if not one or not other:
        return 0.0
    if min(len(one), len(other)) >= 4 and (one in other or other in one):
        return 0.8
    return SequenceMatcher(None, one, other, autojunk=False).ratio()


def match_columns(
    fields: Sequence[Field], names: Sequence[str], titles: Mapping[str, str]
) -> dict[str, tuple[str, ColumnMatch]]:
    """Return the column of the table, and how it was found, for each field that has one.

    Each column is taken once, by the field that it is nearest to.
    """
    if len(names) * len(fields) > MOST_COLUMNS**2 // 100:
        known = set(names)
        pairs = ((f, f.name) for f in fields if f.name in known)
        return {f.name: (name, compare(f, name, "")) for f, name in pairs}
    scored = [
        (match.score, -place, field.name, name, match)
        for place, field in enumerate(fields)
        for name in names
        if (match := compare(field, name, titles.get(name, ""))).certainty
        is not Certainty.OPEN
    ]
    found: dict[str, tuple[str, ColumnMatch]] = {}
    taken: set[str] = set()
    for _, _, field_name, name, match in sorted(
        scored, key=lambda each: each[:2], reverse=True
    ):
        if field_name not in found and name not in taken:
            found[field_name] = name, match
            taken.add(name)
    return found


def candidates_of(
    field: Field, names: Sequence[str], titles: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the columns of a table, the nearest to a field first."""
    if len(names) > MOST_COLUMNS:
        return ()
    scores = {name: compare(field, name, titles.get(name, "")).score for name in names}
    return tuple(sorted(names, key=lambda name: -scores[name]))
