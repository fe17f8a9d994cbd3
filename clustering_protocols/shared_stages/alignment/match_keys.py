"""Match keys: columns that together identify a person, and the steps that normalise them.

A match key is written as text, in the same way in terms, options and forms::

    given_name, surname | sorted-names + birth_date | year

Its parts are separated by ``+``. Each part names one or more columns, followed by steps
after ``|``. The cells of several columns are joined by spaces. Soundex and Metaphone
come from ``jellyfish``, Cologne phonetics from ``cologne_phonetics``, and
transliteration to Latin letters from ``anyascii``.

A row has no value of a key if one of its cells is empty or denotes a missing value, or
if nothing remains of a cell after the steps. A value that several rows of a party share
identifies none of them, and is not compared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from importlib import import_module
from types import ModuleType
from typing import Annotated, Final, NamedTuple

from pydantic import AfterValidator, StringConstraints

from clustering_protocols.common.errors import GuardRefused, InvalidData
from clustering_protocols.common.limits import CONTROLS
from clustering_protocols.shared_stages.alignment.cell_values import (
    DATE_PARTS,
    blank_out_stand_ins,
    parse_date,
)
from clustering_protocols.shared_stages.alignment.identifiers import (
    Step,
    apply_steps,
    split_id,
)
from clustering_protocols.terms.schema import normalise_text

STEP: Final = re.compile(
    r"no-punctuation|digits|strip-zeros|zero-pad:[1-9][0-9]?|first:[1-9][0-9]?"
    r"|transliterate|date|year|month|day|year-month|month-day|sorted-names"
    r"|soundex|metaphone|cologne"
)
_MOST_PARTS, _MOST_CHARACTERS = 8, 400


class KeyPart(NamedTuple):
    """A part of a match key: columns, and the steps applied to their text, in order."""

    columns: tuple[str, ...]
    steps: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " | ".join([", ".join(self.columns), *self.steps])


def parse_match_key(text: str) -> tuple[KeyPart, ...]:
    """Parse a match key into its parts.

    Raises ValueError if a part names no column or an unknown step, or if there are too
        many parts or a part twice.
    """
    parts = tuple(_parse_key_part(part) for part in text.split("+"))
    if len(parts) > _MOST_PARTS:
        raise ValueError(f"a match key has {_MOST_PARTS} parts at most")
    if len(set(parts)) < len(parts):
        raise ValueError("a match key must not repeat a part")
    return parts


def _parse_key_part(text: str) -> KeyPart:
    names, *steps = (piece.strip() for piece in text.split("|"))
    columns = tuple(normalise_text(name) for name in names.split(","))
    if not all(columns):
        raise ValueError(f"{text.strip()!r} names no column")
    if unknown := [step for step in steps if not STEP.fullmatch(step)]:
        raise ValueError(f"{unknown[0]!r} is not a step of a match key")
    return KeyPart(columns, tuple(steps))


MatchKey = Annotated[
    str,
    StringConstraints(pattern=rf"^[^{CONTROLS}]+$", max_length=_MOST_CHARACTERS),
    AfterValidator(lambda text: " + ".join(map(str, parse_match_key(text)))),
]
"""A match key as text; validation brings it into its canonical spelling."""


def key_columns(keys: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct columns of several match keys, in order of appearance."""
    columns = (c for key in keys for part in parse_match_key(key) for c in part.columns)
    return tuple(dict.fromkeys(columns))


_NAME: Final = re.compile(r"[^\W\d_]+")
_NON_LETTERS: Final = re.compile(r"[^a-z]+")


def build_step_function(step: str) -> Callable[[str], str]:
    """Return the function that applies a step to a text.

    The text must already have gone through the normalisation in the terms.

    Raises GuardRefused if the library that the step needs is not installed.
    """
    kind, _, argument = step.partition(":")
    if kind in DATE_PARTS:
        part = DATE_PARTS[kind]
        return lambda text: (parse_date(text) or "")[part]
    if kind == "first":
        return lambda text, n=int(argument): text[:n]  # type: ignore[misc]  # bound now
    if kind == "sorted-names":
        return lambda text: " ".join(sorted(_NAME.findall(text)))
    if kind == "transliterate":
        return _build_transliterator()
    if kind in {"soundex", "metaphone"}:
        return _build_phonetic_encoder(kind)
    if kind == "cologne":
        encode = _import_library("cologne_phonetics").encode
        return lambda text: "".join(code for _, code in encode(text))
    return lambda text: apply_steps(text, [step])


def _build_transliterator() -> Callable[[str], str]:
    latin = _import_library("anyascii").anyascii
    return lambda text: latin(text).lower()


def _build_phonetic_encoder(kind: str) -> Callable[[str], str]:
    latin, encode = _build_transliterator(), getattr(_import_library("jellyfish"), kind)

    def encode_letters(text: str) -> str:
        letters = _NON_LETTERS.sub("", latin(text))
        code: str = encode(letters) if letters else ""
        return code.replace(" ", "")

    return encode_letters


def _import_library(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError:
        raise GuardRefused(
            f"A step of the match keys needs the library {name!r}: "
            "pip install 'coterie[linkage]'."
        ) from None


_SEPARATOR: Final = "\x1f"


@dataclass(frozen=True, slots=True)
class KeyValues:
    """The values of one match key in a party's rows.

    values: the value of each row; None if the row has none, or shares it with another.
    n_filled: the number of rows that have a value.
    n_stand_ins: the number of rows with a cell that stands for a missing value.
    """

    key: str
    values: Sequence[str | None] = field(repr=False)
    n_filled: int
    n_stand_ins: int = 0

    @property
    def n_unique(self) -> int:
        """Return the number of rows whose value no other row has."""
        return sum(value is not None for value in self.values)

    @property
    def uniqueness(self) -> float:
        """Return the proportion of unique values among rows with a value, or 1 for none."""
        return self.n_unique / self.n_filled if self.n_filled else 1.0

    def readable_value(self, row: int) -> str:
        """Return a row's value for display; empty if it has none or shares it."""
        return (self.values[row] or "").replace(_SEPARATOR, " + ")


def compute_key_values(
    names: Sequence[str], keys: Sequence[str], normalisation: Sequence[Step]
) -> list[KeyValues]:
    """Compute the values of the match keys in a party's rows.

    names: the ids of the rows; the parts of an id are the cells of the keys' columns.

    Raises InvalidData if an id does not have as many parts as the keys have columns.
    Raises GuardRefused if the library that a step needs is not installed.
    """
    cells = _normalise_cells(names, key_columns(keys), normalisation)
    values = {column: blank_out_stand_ins(texts) for column, texts in cells.items()}
    stand_ins = {
        column: {
            row for row, text in enumerate(cells[column]) if text and not texts[row]
        }
        for column, texts in values.items()
    }
    texts_by_part: dict[KeyPart, list[str]] = {}
    keys_with_values = []
    for key in keys:
        parts = parse_match_key(key)
        for part in parts:
            if part not in texts_by_part:
                texts_by_part[part] = _compute_part_texts(part, values)
        rows = zip(*(texts_by_part[part] for part in parts), strict=True)
        texts = [_SEPARATOR.join(row) if all(row) else None for row in rows]
        counts = Counter(text for text in texts if text is not None)
        unique = [text if text and counts[text] == 1 else None for text in texts]
        n_stand_ins = len(set().union(*(stand_ins[c] for c in key_columns([key]))))
        keys_with_values.append(KeyValues(key, unique, counts.total(), n_stand_ins))
    return keys_with_values


def check_key_uniqueness(keys: Sequence[KeyValues], minimum: float) -> None:
    """Raise InvalidData if the uniqueness of a key is below ``minimum``.

    The message states the uniqueness of each such key.
    """
    ambiguous = [key for key in keys if key.uniqueness < minimum]
    if ambiguous:
        shares = "; ".join(f"{key.key!r}: {key.uniqueness:.1%}" for key in ambiguous)
        raise InvalidData(
            f"Match keys have to be nearly unique: {minimum:.0%} of the rows with a value need "
            f"one that no other row has. Here fewer have: {shares}. Ask the coordinator for "
            "other keys: coterie table --link proposes some."
        )


def _normalise_cells(
    names: Sequence[str], columns: Sequence[str], steps: Sequence[Step]
) -> dict[str, list[str]]:
    rows = [split_id(name) for name in names]
    if any(len(row) != len(columns) for row in rows):
        raise InvalidData(
            f"Match keys need the columns {', '.join(columns)} of each row, in this "
            "order, as its id columns."
        )
    by_column = zip(*rows, strict=True) if rows else ([] for _ in columns)
    return {
        column: _map_distinct(cells, lambda text: apply_steps(text, steps))
        for column, cells in zip(columns, by_column, strict=True)
    }


def _compute_part_texts(part: KeyPart, cells: dict[str, list[str]]) -> list[str]:
    """Return each row's text for a part; empty if a cell is empty or nothing remains."""
    texts = cells[part.columns[0]]
    if len(part.columns) > 1:
        rows = zip(*(cells[name] for name in part.columns), strict=True)
        texts = [" ".join(row) if all(row) else "" for row in rows]
    steps = [build_step_function(step) for step in part.steps]
    return _map_distinct(texts, lambda text: reduce(lambda t, f: f(t), steps, text))


def _map_distinct(texts: Sequence[str], function: Callable[[str], str]) -> list[str]:
    """Apply a function to the nonempty texts, calling it once for each distinct text."""
    values = {
        text: function(text).replace(_SEPARATOR, " ") if text else ""
        for text in set(texts)
    }
    return [values[text] for text in texts]
