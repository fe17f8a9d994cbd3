"""A match key: columns, and the steps that bring their cells into one form.

A key is a text, so that terms, options and forms show it alike::

    given_name, surname | sorted-names + birth_date | year

Parts are separated by ``+``. A part is one column or several, then steps after ``|``.
Cells of several columns are joined by a blank. Soundex and Metaphone come from
``jellyfish``, Cologne phonetics from ``cologne_phonetics``, Latin letters from
``anyascii``.

A row lacks a key's value if a cell is empty or means missing, or if nothing remains
after the steps. Values that two rows of one party share identify neither of them, and
are not compared.
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
    FORMS,
    blank_out_stand_ins,
    parse_date,
)
from clustering_protocols.shared_stages.alignment.identifiers import (
    Step,
    apply_steps,
    split_id,
)
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


def parse_match_key(text: str) -> tuple[KeyPart, ...]:
    """Return the parts of a match key.

    Raises ValueError, which names the part that cannot be read.
    """
    parts = tuple(_parse_key_part(part) for part in text.split("+"))
    if len(parts) > _MOST_PARTS:
        raise ValueError(f"a match key has {_MOST_PARTS} parts at most")
    if len(set(parts)) < len(parts):
        raise ValueError("a match key has each part once")
    return parts


def _parse_key_part(text: str) -> KeyPart:
    names, *steps = (piece.strip() for piece in text.split("|"))
    columns = tuple(normal(name) for name in names.split(","))
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
"""The text of a match key, in its standard spelling."""


def key_columns(keys: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct columns of keys, in their order."""
    columns = (c for key in keys for part in parse_match_key(key) for c in part.columns)
    return tuple(dict.fromkeys(columns))


_NAME: Final = re.compile(r"[^\W\d_]+")  # a run of letters
_NON_LETTERS: Final = re.compile(r"[^a-z]+")


def build_step_function(step: str) -> Callable[[str], str]:
    """Return a step as a function of a text that has been normalised as the terms say.

    Raises GuardRefused if its library is missing.
    """
    kind, _, argument = step.partition(":")
    if kind in FORMS:
        form = FORMS[kind]
        return lambda text: "" if (day := parse_date(text)) is None else form(day)
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
    """The values of one key, in the order of the rows.

    values: None for a row without a value, or with a value that another row shares.
    n_filled: rows with a value.
    n_stand_ins: rows without a value because a cell means missing.
    """

    key: str
    values: Sequence[str | None] = field(repr=False)
    n_filled: int
    n_stand_ins: int = 0

    @property
    def n_unique(self) -> int:
        """Return the number of rows with a value that no other row has."""
        return sum(value is not None for value in self.values)

    @property
    def uniqueness(self) -> float:
        """Return the share of the filled rows whose value no other row has."""
        return self.n_unique / self.n_filled if self.n_filled else 1.0

    def readable_value(self, row: int) -> str:
        """Return a row's value in readable form; empty if it has none."""
        return (self.values[row] or "").replace(_SEPARATOR, " + ")


def compute_key_values(
    names: Sequence[str], keys: Sequence[str], normalisation: Sequence[Step]
) -> list[KeyValues]:
    """Return the values of match keys in a party's rows.

    names: the ids of the rows, each made of the texts of the keys' columns.

    Raises InvalidData if an id has another number of parts than the keys have columns.
    Raises GuardRefused if the library of a step is missing.
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
    """Refuse a key whose values too many rows share.

    Raises InvalidData, with the share of each such key.
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
            f"Match keys take the columns {', '.join(columns)} of each row, in this "
            "order, as its id columns."
        )
    by_column = zip(*rows, strict=True) if rows else ([] for _ in columns)
    return {
        column: _map_distinct(cells, lambda text: apply_steps(text, steps))
        for column, cells in zip(columns, by_column, strict=True)
    }


def _compute_part_texts(part: KeyPart, cells: dict[str, list[str]]) -> list[str]:
    """Return the texts of a part; empty if a cell is empty, or the steps leave nothing."""
    texts = cells[part.columns[0]]
    if len(part.columns) > 1:
        rows = zip(*(cells[name] for name in part.columns), strict=True)
        texts = [" ".join(row) if all(row) else "" for row in rows]
    steps = [build_step_function(step) for step in part.steps]
    return _map_distinct(texts, lambda text: reduce(lambda t, f: f(t), steps, text))


def _map_distinct(texts: Sequence[str], function: Callable[[str], str]) -> list[str]:
    """Apply a function to each nonempty text, only once to equal texts."""
    values = {
        text: function(text).replace(_SEPARATOR, " ") if text else ""
        for text in set(texts)
    }
    return [values[text] for text in texts]
