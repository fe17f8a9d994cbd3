"""Ids of rows: brought into one form, each once.

An id is a text. A composite one, of several columns, is the JSON list of its parts
(:func:`join`), so that no two lists give one text: ("ab", "c") is not ("a", "bc").
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Collection, Sequence
from functools import cache, partial
from typing import Final, Literal, NamedTuple

import numpy as np

from clustering_protocols.arrays import IntArray
from clustering_protocols.errors import InvalidData

_quoted = json.JSONEncoder(ensure_ascii=False).encode
_WITHIN: Final = re.compile(r"(?<=\S)\s+(?=\S)")

Step = Literal["nfc", "nfkc", "casefold", "spaces", "strip"]
Duplicates = Literal["error", "first"]


class Identified(NamedTuple):
    """Different ids, each the JSON list of its normal parts, and the rows they name."""

    ids: list[str]
    rows: IntArray

    @property
    def rows_by_id(self) -> IntArray:
        """Return the rows in the order of their ids (code points)."""
        order = sorted(range(len(self.ids)), key=self.ids.__getitem__)
        return self.rows[np.array(order, dtype=np.int64)]


def join(parts: Sequence[str]) -> str:
    """Return the id of a row that several columns name."""
    return f"[{','.join(map(_quoted, parts))}]"


def normal_form(name: str, steps: Collection[Step]) -> list[str]:
    """Return the parts of an id as the parties compare them."""
    return [*map(_normal(tuple(steps)), _parts(name))]


def compared(name: str, steps: Collection[Step]) -> str:
    """Return an id as the parties compare it, as one text."""
    return join(normal_form(name, steps))


def identify(
    names: Sequence[str], steps: Collection[Step], duplicates: Duplicates
) -> Identified:
    """Return the different ids of rows, in the order of the rows.

    Raises
    ------
    InvalidData
        If a row has an empty id, or two rows have one, unless ``first`` counts alone.
        The text names rows, counted from 1, and no id.
    """
    seen: dict[str, int] = {}
    for row, name in enumerate(names):
        parts = normal_form(name, steps)
        if "" in parts:
            raise InvalidData(f"Row {row + 1} has no id after normalisation.")
        first = seen.setdefault(join(parts), row)
        if first != row and duplicates == "error":
            raise InvalidData(
                f"Rows {first + 1} and {row + 1} have the same id after normalisation; "
                "with alignment.duplicates 'first' the first one would count."
            )
    return Identified(list(seen), np.array(list(seen.values()), dtype=np.int64))


def _parts(name: str) -> list[str]:
    if name.startswith('["'):
        try:
            found = json.loads(name)
        except ValueError:
            return [name]
        if len(found) > 1 and all(isinstance(part, str) for part in found):
            return list(found)
    return [name]


@cache
def _normal(steps: tuple[Step, ...]) -> Callable[[str], str]:
    """Return what brings a part of an id into one form; a table has millions."""
    unicode = partial(unicodedata.normalize, "NFKC" if "nfkc" in steps else "NFC")
    composes, folds = {"nfc", "nfkc"} & set(steps), "casefold" in steps
    spaces, strips = "spaces" in steps, "strip" in steps

    def normal(part: str) -> str:
        if composes and not part.isascii():
            part = unicode(part)
        if folds:
            part = part.casefold()
            if composes and not part.isascii():
                part = unicode(part)  # folding can undo a composition
        if spaces:
            part = _WITHIN.sub(" ", part)
        return part.strip() if strips else part

    return normal
