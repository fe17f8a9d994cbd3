"""Normalisation of row ids, and detection of duplicates.

An id is a string. If it is made of several columns, it is the JSON list of its parts
(:func:`join_parts`), so that different lists, such as ("ab", "c") and ("a", "bc"),
always give different strings.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Annotated, Final, Literal, NamedTuple

import numpy as np
from pydantic import StringConstraints

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.records.arrays import IntArray

_quoted = json.JSONEncoder(ensure_ascii=False).encode
_SPACE: Final = re.compile(r"\s")
_INNER_SPACES: Final = re.compile(r"(?<=\S)\s+(?=\S)")

# For speed, thousands of ids are normalised as one string. They are joined by a character
# that occurs in no id, and that no step changes or combines with its neighbours.
_BATCH: Final = 1 << 14
_SEPARATOR: Final = "\0"
_INNER_SPACES_OF_BATCH: Final = re.compile(r"(?<=[^\s\0])\s+(?=[^\s\0])")
_LIST: Final = '["'  # the beginning of every composite id
_NON_ALPHANUMERIC: Final = re.compile(r"[^0-9A-Za-z]+")
_NON_DIGITS: Final = re.compile(r"[^0-9]+")
_ESCAPED: Final = re.compile(r'["\\\x01-\x1f]')  # characters that JSON escapes

_STEP: Final = (
    r"^(nfc|nfkc|casefold|spaces|strip|no-punctuation|digits|strip-zeros"
    r"|zero-pad:[1-9][0-9]?)$"
)
Step = Annotated[str, StringConstraints(pattern=_STEP)]
"""A step of normalisation, such as ``zero-pad:8``: pad with zeros to eight characters."""

PADDING: Final = "zero-pad:"
Duplicates = Literal["error", "first"]


class IdentifiedRows(NamedTuple):
    """Distinct ids, each the JSON list of its normalised parts, and the row of each."""

    ids: list[str]
    rows: IntArray

    @property
    def rows_by_id(self) -> IntArray:
        """Return the rows, sorted by the code points of their ids."""
        order = sorted(range(len(self.ids)), key=self.ids.__getitem__)
        return self.rows[np.array(order, dtype=np.int64)]


def join_parts(parts: Sequence[str]) -> str:
    """Return the parts of an id as one string, a JSON list."""
    return f"[{','.join(map(_quoted, parts))}]"


def normalise_id_parts(name: str, steps: Collection[Step]) -> list[str]:
    """Split an id into its parts and normalise each of them."""
    return [apply_steps(part, steps) for part in split_id(name)]


def apply_steps(text: str, steps: Collection[Step]) -> str:
    """Normalise a text; steps are applied in their documented order, not as listed."""
    return _apply_single_steps([_apply_joint_steps(text, steps)], steps)[0]


def normalise_id(name: str, steps: Collection[Step]) -> str:
    """Return an id in the normalised form in which parties compare it, a JSON list."""
    return join_parts(normalise_id_parts(name, steps))


def normalise_ids(names: Iterable[str], steps: Collection[Step]) -> Iterator[str]:
    """Yield :func:`normalise_id` of each id, computed in batches for speed."""
    iterator = iter(names)
    while batch := list(islice(iterator, _BATCH)):
        text = _SEPARATOR.join(batch)
        if _LIST in text or text.count(_SEPARATOR) >= len(batch):
            yield from (normalise_id(name, steps) for name in batch)
            continue
        text = _apply_joint_steps(text, steps, _INNER_SPACES_OF_BATCH)
        ids = _apply_single_steps(text.split(_SEPARATOR), steps)
        if _ESCAPED.search(text) is None:
            yield from [f'["{name}"]' for name in ids]
        else:
            yield from [join_parts([name]) for name in ids]


def distinct_ids(
    names: Sequence[str],
    steps: Collection[Step],
    duplicates: Duplicates,
    left_out: Collection[int] = frozenset(),
) -> IdentifiedRows:
    """Return the distinct ids of all rows except those in ``left_out``, in row order.

    Raises InvalidData if an id has an empty part, or if two rows have the same id and
        ``duplicates`` is 'error'. The message numbers rows from 1 and shows no id.
    """
    row_by_id: dict[str, int] = {}
    for row, name in enumerate(normalise_ids(names, steps)):
        if row in left_out:
            continue
        if '""' in name and "" in json.loads(name):
            raise InvalidData(f"Row {row + 1} has no id after normalisation.")
        first = row_by_id.setdefault(name, row)
        if first != row and duplicates == "error":
            raise InvalidData(
                f"Rows {first + 1} and {row + 1} have the same id after normalisation; "
                "with alignment.duplicates 'first' the first one would count."
            )
    rows = np.array(list(row_by_id.values()), dtype=np.int64)
    return IdentifiedRows(list(row_by_id), rows)


def split_id(name: str) -> list[str]:
    """Return the parts of a composite id; for any other id, a list of that id alone."""
    if name.startswith(_LIST):
        try:
            parts = json.loads(name)
        except ValueError:
            return [name]
        if len(parts) > 1 and all(isinstance(part, str) for part in parts):
            return list(parts)
    return [name]


def _apply_joint_steps(
    text: str, steps: Collection[Step], spaces: re.Pattern[str] = _INNER_SPACES
) -> str:
    """Apply the steps that give the same result on joined texts as on each alone."""
    composes = "nfc" in steps or "nfkc" in steps
    form: Literal["NFC", "NFKC"] = "NFKC" if "nfkc" in steps else "NFC"
    if composes and not text.isascii():
        text = unicodedata.normalize(form, text)
    if "casefold" in steps:
        text = text.casefold()
        if composes and not text.isascii():
            text = unicodedata.normalize(form, text)  # case folding may decompose again
    # Searching first is faster, as most texts need no substitution.
    if "spaces" in steps and _SPACE.search(text):
        text = spaces.sub(" ", text)
    return text


def _apply_single_steps(parts: list[str], steps: Collection[Step]) -> list[str]:
    """Apply, in order, the steps that must process each text by itself."""
    if "strip" in steps:
        parts = [part.strip() for part in parts]
    if "no-punctuation" in steps:
        parts = [
            _NON_ALPHANUMERIC.sub("", part)
            if part.isascii()
            else "".join(c for c in part if unicodedata.category(c)[0] in "LMN")
            for part in parts
        ]
    if "digits" in steps:
        parts = [
            _NON_DIGITS.sub("", part)
            if part.isascii()
            else "".join(str(unicodedata.decimal(c)) for c in part if c.isdecimal())
            for part in parts
        ]
    if "strip-zeros" in steps:  # a text of zeros becomes a single zero
        parts = [part.lstrip("0") or part[:1] for part in parts]
    width = find_padded_length(steps)
    # An empty text must stay empty, so that the id is still recognised as missing.
    return [part and part.rjust(width, "0") for part in parts] if width else parts


def find_padded_length(steps: Collection[Step]) -> int:
    """Return the length to which ids are padded with zeros, or 0 without padding."""
    widths = (step.removeprefix(PADDING) for step in steps if step.startswith(PADDING))
    return int(next(widths, 0))
