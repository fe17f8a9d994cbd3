"""Ids of rows: brought into one form, each once.

An id is a text. A composite one, of several columns, is the JSON list of its parts
(:func:`join`), so that no two lists give one text: ("ab", "c") is not ("a", "bc").
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
_WITHIN: Final = re.compile(r"(?<=\S)\s+(?=\S)")

# Ids are brought into one form thousands at once: a character that none of them holds
# stands between them, and neither joins with its neighbours nor changes.
_AT_ONCE: Final = 1 << 14
_BETWEEN: Final = "\0"
_WITHIN_ONE: Final = re.compile(r"(?<=[^\s\0])\s+(?=[^\s\0])")
_LIST: Final = '["'  # what begins with it may be a list of parts
_NO_WORD: Final = re.compile(r"[^0-9A-Za-z]+")
_NO_DIGIT: Final = re.compile(r"[^0-9]+")
_ESCAPED: Final = re.compile(r'["\\\x01-\x1f]')  # what JSON writes otherwise

_STEP: Final = (
    r"^(nfc|nfkc|casefold|spaces|strip|no-punctuation|digits|strip-zeros"
    r"|zero-pad:[1-9][0-9]?)$"
)
Step = Annotated[str, StringConstraints(pattern=_STEP)]
"""A step of normalisation; ``zero-pad:8`` fills up to eight characters."""

PADDING: Final = "zero-pad:"
Duplicates = Literal["error", "first"]


class IdentifiedRows(NamedTuple):
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
    return [apply_steps(part, steps) for part in parts_of(name)]


def apply_steps(text: str, steps: Collection[Step]) -> str:
    """Return a text after steps, in the order of the table, whatever it looks like."""
    return _ends([_even(text, steps, _WITHIN)], steps)[0]


def normalise_id(name: str, steps: Collection[Step]) -> str:
    """Return an id as the parties compare it, as one text."""
    return join(normal_form(name, steps))


def all_compared(names: Iterable[str], steps: Collection[Step]) -> Iterator[str]:
    """Yield :func:`normalise_id` of each id, many at once: a table has millions."""
    waiting = iter(names)
    while some := list(islice(waiting, _AT_ONCE)):
        text = _BETWEEN.join(some)
        if _LIST in text or text.count(_BETWEEN) >= len(some):
            yield from (normalise_id(name, steps) for name in some)
            continue
        text = _even(text, steps, _WITHIN_ONE)
        ids = _ends(text.split(_BETWEEN), steps)
        if _ESCAPED.search(text) is None:
            yield from [f'["{each}"]' for each in ids]
        else:
            yield from [join([each]) for each in ids]


def identify(
    names: Sequence[str],
    steps: Collection[Step],
    duplicates: Duplicates,
    unnamed: Collection[int] = frozenset(),
) -> IdentifiedRows:
    """Return the different ids of rows but the unnamed ones, in the order of the rows.

    Raises InvalidData if a row has an empty id, or two rows have one, unless ``first``
        counts alone. The text names rows, counted from 1, and no id.
    """
    seen: dict[str, int] = {}
    for row, name in enumerate(all_compared(names, steps)):
        if row in unnamed:
            continue
        if '""' in name and "" in json.loads(name):
            raise InvalidData(f"Row {row + 1} has no id after normalisation.")
        first = seen.setdefault(name, row)
        if first != row and duplicates == "error":
            raise InvalidData(
                f"Rows {first + 1} and {row + 1} have the same id after normalisation; "
                "with alignment.duplicates 'first' the first one would count."
            )
    return IdentifiedRows(list(seen), np.array(list(seen.values()), dtype=np.int64))


def parts_of(name: str) -> list[str]:
    """Return the parts of an id as they are; one where it has no more."""
    if name.startswith('["'):
        try:
            found = json.loads(name)
        except ValueError:
            return [name]
        if len(found) > 1 and all(isinstance(part, str) for part in found):
            return list(found)
    return [name]


def _even(text: str, steps: Collection[Step], within: re.Pattern[str]) -> str:
    """Return a text in one form, but for its ends; ``within`` finds runs of spaces."""
    composes = "nfc" in steps or "nfkc" in steps
    form: Literal["NFC", "NFKC"] = "NFKC" if "nfkc" in steps else "NFC"
    if composes and not text.isascii():
        text = unicodedata.normalize(form, text)
    if "casefold" in steps:
        text = text.casefold()
        if composes and not text.isascii():
            text = unicodedata.normalize(form, text)  # folding can undo a composition
    if "spaces" in steps and _SPACE.search(
        text
    ):  # quicker than to find none to replace
        text = within.sub(" ", text)
    return text


def _ends(parts: list[str], steps: Collection[Step]) -> list[str]:
    """Return texts after the steps that look at one text at a time, in their order."""
    if "strip" in steps:
        parts = [part.strip() for part in parts]
    if "no-punctuation" in steps:
        parts = [_without_punctuation(part) for part in parts]
    if "digits" in steps:
        parts = [_digits(part) for part in parts]
    if "strip-zeros" in steps:  # of zeros alone one is left
        parts = [part.lstrip("0") or part[:1] for part in parts]
    width = find_padded_length(steps)
    # what is empty stays so: it is no id
    return [part and part.rjust(width, "0") for part in parts] if width else parts


def find_padded_length(steps: Collection[Step]) -> int:
    """Return to how many characters ids are filled with zeros; 0 where they are not."""
    found = [step for step in steps if step.startswith(PADDING)]
    return int(found[0].removeprefix(PADDING)) if found else 0


def _without_punctuation(text: str) -> str:
    """Return the letters, marks and digits of a text."""
    if text.isascii():
        return _NO_WORD.sub("", text)
    return "".join(each for each in text if unicodedata.category(each)[0] in "LMN")


def _digits(text: str) -> str:
    """Return the decimal digits of a text, written 0 to 9."""
    if text.isascii():
        return _NO_DIGIT.sub("", text)
    return "".join(str(unicodedata.decimal(e)) for e in text if e.isdecimal())
