"""Steps of a match key: what each makes of a text.

Soundex and Metaphone come from ``jellyfish``, Cologne phonetics from
``cologne_phonetics``, Latin letters from ``anyascii``. A text of which nothing is left
is no value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Final

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.shared_stages.alignment.identifiers import apply_steps
from clustering_protocols.shared_stages.alignment.match_keys.dates import (
    FORMS,
    read_date,
)

_LIBRARIES: Final = {
    "transliterate": ("anyascii",),
    "soundex": ("anyascii", "jellyfish"),
    "metaphone": ("anyascii", "jellyfish"),
    "cologne": ("cologne_phonetics",),
}
_NAME: Final = re.compile(r"[^\W\d_]+")  # a run of letters
_NO_LETTER: Final = re.compile(r"[^a-z]+")


def require(steps: Iterable[str]) -> None:
    """Refuse, with :class:`GuardRefused`, where a library of a step is missing."""
    for step in steps:
        for name in _LIBRARIES.get(step, ()):
            _library(name)


def step_function(step: str) -> Callable[[str], str]:
    """Return what a step makes of a text after the normalisation of the terms.

    Raises GuardRefused if its library is missing.
    """
    kind, _, argument = step.partition(":")
    if kind in FORMS:
        return partial(_of_date, FORMS[kind])
    if kind == "first":
        return lambda text, n=int(argument): text[:n]  # type: ignore[misc]  # bound now
    if kind == "sorted-names":
        return lambda text: " ".join(sorted(_NAME.findall(text)))
    if kind == "transliterate":
        return _transliterate()
    if kind in {"soundex", "metaphone"}:
        return _phonetic(kind)
    if kind == "cologne":
        return _cologne()
    return lambda text: apply_steps(text, [step])


def _of_date(form: Callable[..., str], text: str) -> str:
    day = read_date(text)
    return "" if day is None else form(day)


def _transliterate() -> Callable[[str], str]:
    latin = _library("anyascii").anyascii
    return lambda text: latin(text).lower()


def _phonetic(kind: str) -> Callable[[str], str]:
    latin, encode = _transliterate(), getattr(_library("jellyfish"), kind)

    def encode_letters(text: str) -> str:
        letters = _NO_LETTER.sub("", latin(text))
        found: str = encode(letters) if letters else ""
        return found.replace(" ", "")

    return encode_letters


def _cologne() -> Callable[[str], str]:
    encode = _library("cologne_phonetics").encode
    return lambda text: "".join(code for _, code in encode(text))


def _library(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError:
        raise GuardRefused(
            f"A step of the match keys takes the library {name!r}: "
            "pip install 'coterie[linkage]'."
        ) from None
