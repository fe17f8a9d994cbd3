"""Patterns that describe what ids look like, such as KV-99999999.

In a pattern, 9 stands for any digit and A (or a) for any letter; all other characters
stand for themselves. The terms of a session contain the patterns. Each party normalises
the patterns and its ids in the same way, compares them on its own machine, and does not
disclose how many ids fit.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Annotated, Final, NamedTuple

from pydantic import StringConstraints

from clustering_protocols.common.limits import CONTROLS
from clustering_protocols.shared_stages.alignment.identifiers import (
    PADDING,
    Step,
    find_padded_length,
    normalise_id_parts,
    split_id,
)

Pattern = Annotated[str, StringConstraints(pattern=rf"^[^{CONTROLS}]+$", max_length=64)]

_DIGIT, _LETTER = "9", "A"
_FORMS: Final = {_DIGIT: r"\d", _LETTER: r"[^\W\d_]"}
_LEAST_IDS: Final = 10
_FIXED_SHARE: Final = 0.9  # of the ids must share a letter to make it literal
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
"""Steps that may help if added to a normalisation, in the order in which to try them."""


class PatternFit(NamedTuple):
    """The number of ids that fit a pattern, and the number that fit after ``steps``."""

    n_ids: int
    n_fitting: int
    steps: tuple[Step, ...]
    n_mended: int

    def describe_misfits(self, patterns: Sequence[str]) -> str:
        """Return a note for the operator; empty if all ids fit."""
        if self.n_fitting == self.n_ids:
            return ""
        sentence = (
            f"{self.n_fitting} of {self.n_ids} ids look like the session's "
            f"{', '.join(map(repr, patterns))}; others may be linked to nobody."
        )
        if self.n_mended <= self.n_fitting:
            return sentence
        return (
            f"{sentence} With the steps {', '.join(self.steps)} in alignment.normalisation "
            f"{self.n_mended} would: ask the coordinator, or correct your ids."
        )


def fit_patterns(
    patterns: Sequence[str], ids: Sequence[str], steps: Collection[Step]
) -> PatternFit:
    """Count the ids that fit, and find the additional steps with which most would fit.

    patterns: one pattern for each id column.
    ids: the ids as written in the table, before normalisation.
    """
    n_fitting = _count_fits(patterns, ids, steps)
    best = PatternFit(len(ids), n_fitting, (), n_fitting)
    if n_fitting == len(ids):
        return best
    kinds = {step.partition(":")[0] for step in steps}
    for mend in _MENDS:
        new_steps = [step for step in mend if step.partition(":")[0] not in kinds]
        if PADDING in new_steps:
            new_steps.remove(PADDING)
            tokens = (_tokenise(pattern, [*steps, *new_steps]) for pattern in patterns)
            new_steps.append(f"{PADDING}{max(1, *map(len, tokens))}")
        n_mended = _count_fits(patterns, ids, [*steps, *new_steps]) if new_steps else 0
        if n_mended > best.n_mended:
            best = PatternFit(len(ids), n_fitting, tuple(new_steps), n_mended)
    return best


def draft_patterns(ids: Sequence[str]) -> tuple[str, ...]:
    """Return the most frequent pattern in each id column; empty if there are no ids.

    If at least ten ids have the pattern, and 90 % of these ids have the same letter at
    a position, the pattern contains that letter instead of a placeholder. A digit is
    always replaced by a placeholder.
    """
    rows = [split_id(name) for name in ids]
    if not rows:
        return ()
    ((width, _),) = Counter(map(len, rows)).most_common(1)
    columns = zip(*(parts for parts in rows if len(parts) == width), strict=True)
    return tuple(map(_draft_pattern, columns))


def _draft_pattern(texts: Sequence[str]) -> str:
    forms = [
        "".join(
            _DIGIT if c.isdecimal() else _LETTER if c.isalpha() else c for c in text
        )
        for text in texts
    ]
    ((form, n),) = Counter(forms).most_common(1)
    matches = [
        text for text, text_form in zip(texts, forms, strict=True) if text_form == form
    ]
    pattern = ""
    for kind, *characters in zip(form, *matches, strict=True):
        ((letter, n_same),) = Counter(characters).most_common(1)
        is_fixed = kind == _LETTER and n >= _LEAST_IDS and n_same >= _FIXED_SHARE * n
        # A literal A would be read as a placeholder for any letter.
        pattern += letter if is_fixed and letter.upper() != _LETTER else kind
    return pattern


def _count_fits(
    patterns: Sequence[str], ids: Sequence[str], steps: Collection[Step]
) -> int:
    tokens = [_tokenise(pattern, steps) for pattern in patterns]
    forms = [
        re.compile(
            "".join(_FORMS[t.text] if t.is_kind else re.escape(t.text) for t in column)
        )
        for column in tokens
    ]
    # Without leading zeros, a number may be shorter than its pattern.
    may_be_shorter = "strip-zeros" in steps and not find_padded_length(steps)
    widths = [len(column) if may_be_shorter else 0 for column in tokens]
    n = 0
    for name in ids:
        parts = normalise_id_parts(name, steps)
        n += len(parts) == len(forms) and all(
            part and form.fullmatch(part.rjust(width, "0"))
            for form, part, width in zip(forms, parts, widths, strict=True)
        )
    return n


class _Token(NamedTuple):
    """A character of a pattern; ``is_kind`` marks a placeholder for a digit or letter."""

    text: str
    is_kind: bool


_ZERO: Final = _Token("0", is_kind=False)


def _tokenise(pattern: str, steps: Collection[Step]) -> list[_Token]:
    """Return the characters of a pattern after its literal ones have been normalised."""
    tokens = []
    for character in pattern:
        is_kind = character.upper() in _FORMS
        tokens.append(_Token(character.upper() if is_kind else character, is_kind))
    if "strip" in steps:
        text = "".join(token.text for token in tokens)
        begin = len(text) - len(text.lstrip())
        tokens = tokens[begin : len(text.rstrip())]
    if "casefold" in steps:
        tokens = [
            t if t.is_kind else _Token(t.text.casefold(), is_kind=False) for t in tokens
        ]
    if "no-punctuation" in steps:
        tokens = [t for t in tokens if unicodedata.category(t.text[0])[0] in "LMN"]
    if "digits" in steps:
        tokens = [t for t in tokens if t.text.isdecimal()]
    if "strip-zeros" in steps:
        while len(tokens) > 1 and tokens[0] == _ZERO:
            tokens = tokens[1:]
    n_missing = find_padded_length(steps) - len(tokens)
    return [_ZERO] * n_missing + tokens
