"""What ids look like: patterns, which ids fit them, and what would make more fit.

In a pattern 9 is a digit and A (or a) a letter; all else stands for itself: KV-99999999.
A pattern and the ids go through the same normalisation before they are compared. All of
it happens at home: the terms carry the pattern, and no answer says how many ids fit.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Annotated, Final, NamedTuple

from pydantic import StringConstraints

from clustering_protocols.common.limits import CONTROLS
from clustering_protocols.shared_stages.alignment.identifiers import (
    PADDING,
    Step,
    find_padded_length,
    normal_form,
    parts_of,
)

Pattern = Annotated[str, StringConstraints(pattern=rf"^[^{CONTROLS}]+$", max_length=64)]

_DIGIT, _LETTER = "9", "A"
_FORMS: Final = {_DIGIT: r"\d", _LETTER: r"[^\W\d_]"}
_LEAST_IDS: Final = 10
_MOST: Final = 0.9  # of the ids of one form have a letter that stands for itself
_MENDS: Final[Sequence[tuple[Step, ...]]] = (
    ("no-punctuation",),
    ("strip-zeros",),
    (PADDING,),
    ("no-punctuation", "strip-zeros"),
    ("no-punctuation", PADDING),
    ("digits",),
    ("digits", "strip-zeros"),
    ("digits", PADDING),
    ("digits", "strip-zeros", PADDING),
)
"""What may be added to a normalisation, the least first; zero-pad as wide as needed."""


class PatternFit(NamedTuple):
    """How many ids fit, and how many would with further steps of normalisation."""

    n_ids: int
    n_fitting: int
    steps: tuple[Step, ...]
    n_mended: int

    def sentence(self, patterns: Sequence[str]) -> str:
        """Return what an operator should know; nothing where all ids fit."""
        if self.n_fitting == self.n_ids:
            return ""
        shown = ", ".join(map(repr, patterns))
        said = (
            f"{self.n_fitting} of {self.n_ids} ids look like the session's {shown}; "
            "others may be linked to nobody."
        )
        if self.n_mended <= self.n_fitting:
            return said
        return (
            f"{said} With the steps {', '.join(self.steps)} in alignment.normalisation "
            f"{self.n_mended} would: ask the coordinator, or mend your ids."
        )


def fit(
    patterns: Sequence[str], ids: Sequence[str], steps: Collection[Step]
) -> PatternFit:
    """Return how many ids fit after normalisation, and which further steps mend most.

    patterns: one for each column of which ids consist.
    ids: as a table gives them.
    """
    now = _n_fitting(patterns, ids, steps)
    best = PatternFit(len(ids), now, (), now)
    if now == len(ids):
        return best
    for more in _MENDS:
        kinds = {step.partition(":")[0] for step in steps}
        added = [step for step in more if step.partition(":")[0] not in kinds]
        tried = [*(s for s in added if s != PADDING)]
        if PADDING in added:
            widths = (len(_places(pattern, [*steps, *tried])) for pattern in patterns)
            tried.append(f"{PADDING}{max(1, *widths)}")
        found = _n_fitting(patterns, ids, [*steps, *tried]) if tried else 0
        if found > best.n_mended:
            best = PatternFit(len(ids), now, tuple(tried), found)
    return best


def draft_patterns(ids: Sequence[str]) -> tuple[str, ...]:
    """Return what most ids look like, one pattern for each of their columns.

    A letter that nine in ten ids of that form share stands for itself; no digit does.
    """
    columns = zip(*_of_one_length([parts_of(each) for each in ids]), strict=True)
    return tuple(map(_draft_pattern, columns))


def _of_one_length(ids: list[list[str]]) -> Iterator[list[str]]:
    """Yield ids of the most frequent number of parts."""
    if not ids:
        return
    ((length, _),) = Counter(map(len, ids)).most_common(1)
    yield from (each for each in ids if len(each) == length)


def _draft_pattern(texts: Sequence[str]) -> str:
    forms = [_form(text) for text in texts]
    ((form, n),) = Counter(forms).most_common(1)
    alike = [text for text, own in zip(texts, forms, strict=True) if own == form]
    places = zip(form, *alike, strict=True)
    return "".join(_common(each[1:], each[0], n) for each in places)


def _common(found: Sequence[str], kind: str, n: int) -> str:
    """Return the letter that most have, unless it would read as a kind, or ids are few."""
    ((letter, times),) = Counter(found).most_common(1)
    is_kept = kind == _LETTER and n >= _LEAST_IDS and times >= _MOST * n
    return letter if is_kept and letter.upper() != _LETTER else kind


def _form(text: str) -> str:
    return "".join(
        _DIGIT if e.isdecimal() else _LETTER if e.isalpha() else e for e in text
    )


def _n_fitting(
    patterns: Sequence[str], ids: Sequence[str], steps: Collection[Step]
) -> int:
    places = [_places(pattern, steps) for pattern in patterns]
    forms = [
        re.compile(
            "".join(_FORMS[p.text] if p.is_kind else re.escape(p.text) for p in each)
        )
        for each in places
    ]
    # without its zeros a number is as long as it likes
    shorter = "strip-zeros" in steps and not find_padded_length(steps)
    widths = [len(each) if shorter else 0 for each in places]
    n = 0
    for each in ids:
        parts = normal_form(each, steps)
        n += len(parts) == len(forms) and all(
            part and form.fullmatch(part.rjust(width, "0"))
            for form, part, width in zip(forms, parts, widths, strict=True)
        )
    return n


class _Place(NamedTuple):
    """One character of a pattern, and whether it stands for a kind of characters."""

    text: str
    is_kind: bool


_ZERO: Final = _Place("0", is_kind=False)


def _places(pattern: str, steps: Collection[Step]) -> list[_Place]:
    """Return a pattern after normalisation; what stands for a kind stays that kind."""
    found = []
    for each in pattern:
        kind = each.upper() if each.upper() in _FORMS else ""
        found.append(_Place(kind or each, bool(kind)))
    if "strip" in steps:
        text = "".join(place.text for place in found)
        begin = len(text) - len(text.lstrip())
        found = found[begin : len(text.rstrip())]
    if "casefold" in steps:
        found = [
            p if p.is_kind else _Place(p.text.casefold(), is_kind=False) for p in found
        ]
    if "no-punctuation" in steps:
        found = [p for p in found if unicodedata.category(p.text[0])[0] in "LMN"]
    if "digits" in steps:
        found = [p for p in found if p.text.isdecimal()]
    if "strip-zeros" in steps:
        while len(found) > 1 and found[0] == _ZERO:
            found = found[1:]
    missing = find_padded_length(steps) - len(found)
    return [_ZERO] * missing + found
