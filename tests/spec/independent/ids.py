"""Section 11, ids: their normal form, and which rows may take part."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from .derivations import Refusal

_WHITE: Final = (
    r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
)
_INNER: Final = re.compile(f"(?<=[^{_WHITE}])[{_WHITE}]+(?=[^{_WHITE}])")
_OUTER: Final = re.compile(f"\\A[{_WHITE}]+|[{_WHITE}]+\\Z")
_USUAL: Final = ("nfkc", "casefold", "spaces", "strip")
_PADDING: Final = "zero-pad:"
_METHODS: Final = ("declared", "position", "ecdh")
_KNOWN: Final = {
    "method",
    "normalisation",
    "duplicates",
    "minimum_overlap",
    "minimum_share",
    "match_keys",
    "key_uniqueness",
}


def read_alignment(terms: Mapping[str, Any]) -> dict[str, Any]:
    """Section 11, alignment: what terms say of it, if this party knows all of it."""
    said = terms["protocol"].get("params", {}).get("alignment", {})
    known = said.get("method", "declared") in _METHODS and not set(said) - _KNOWN
    if not known or set(map(_kind, steps_of(said))) - {*_STEPS, _PADDING}:
        raise Refusal("version-mismatch")
    return dict(said)


def steps_of(alignment: Mapping[str, Any]) -> Sequence[str]:
    """Section 11, ids: the steps of the terms."""
    return tuple(alignment.get("normalisation", _USUAL))


def _kind(step: str) -> str:
    """Section 11, ids: a step without its number."""
    return _PADDING if step.startswith(_PADDING) else step


def parts_of(name: str) -> list[str]:
    """Section 11, ids: the parts of an id."""
    if name.startswith('["'):
        try:
            found = json.loads(name)
        except ValueError:
            return [name]
        if len(found) > 1 and all(isinstance(part, str) for part in found):
            return list(found)
    return [name]


def _fold(text: str, steps: Sequence[str]) -> str:
    """Section 11, ids: full case folding; then the form again."""
    return _form(text.casefold(), steps)


def _form(text: str, steps: Sequence[str]) -> str:
    """Section 11, ids: the Unicode form that the steps name."""
    forms: dict[str, Literal["NFC", "NFKC"]] = {"nfc": "NFC", "nfkc": "NFKC"}
    for step in set(steps) & set(forms):
        text = unicodedata.normalize(forms[step], text)
    return text


def _keep(text: str, category: str) -> str:
    """Section 11, ids: the characters of some categories."""
    return "".join(
        c for c in text if unicodedata.category(c).startswith(tuple(category.split()))
    )


_STEPS: Final[Mapping[str, Callable[[str, Sequence[str]], str]]] = {
    "nfc": _form,
    "nfkc": _form,
    "casefold": _fold,
    "spaces": lambda text, _: _INNER.sub(" ", text),
    "strip": lambda text, _: _OUTER.sub("", text),
    "no-punctuation": lambda text, _: _keep(text, "L M N"),
    "digits": lambda text, _: "".join(str(int(c)) for c in _keep(text, "Nd")),
    "strip-zeros": lambda text, _: re.sub(r"\A0+(?=.)", "", text, flags=re.DOTALL),
}


def apply_steps(text: str, steps: Sequence[str]) -> str:
    """Section 11, ids: a part after the steps, in the order of the table."""
    for name, change in _STEPS.items():
        if name in steps:
            text = change(text, steps)
    for step in steps:
        if step.startswith(_PADDING) and text:
            text = text.rjust(int(step.removeprefix(_PADDING)), "0")
    return text


def normal_form(name: str, steps: Sequence[str]) -> str:
    """Section 11, ids: the normal form of an id."""
    parts = [apply_steps(part, steps) for part in parts_of(name)]
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":"))


def normal_forms(names: Sequence[str], alignment: Mapping[str, Any]) -> list[str]:
    """Section 11, ids: the normal forms of ids."""
    return [normal_form(name, steps_of(alignment)) for name in names]


def identify(
    names: Sequence[str] | None, alignment: Mapping[str, Any], *, shared: bool
) -> dict[str, int]:
    """Section 11, ids: the ids that count, each with its row; refuse what must not be."""
    if names is None:
        raise Refusal("invalid-data")
    forms = normal_forms(names, alignment) if shared else names
    found: dict[str, int] = {}
    for row, form in enumerate(forms):
        if shared and "" in json.loads(form):
            raise Refusal("invalid-data")
        first = found.setdefault(form, row)
        if first != row and alignment.get("duplicates", "error") == "error":
            raise Refusal("invalid-data")
    return found


def arrive(
    names: Sequence[str] | None,
    n_rows: int,
    alignment: Mapping[str, Any],
    *,
    shared: bool,
) -> list[int]:
    """Section 11, ids and alignment: which rows join, in their order."""
    everything = list(range(n_rows))
    method = alignment.get("method", "declared")
    if names is None and (not shared or method == "position"):
        return everything
    found = identify(names, alignment, shared=shared)
    if not shared or method == "position":
        return list(found.values())
    if method == "ecdh":
        return everything
    return [found[name] for name in sorted(found)]
