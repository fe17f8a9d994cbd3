"""Layer: keyed digests of ids and names, and the order of rows."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.vectors.form import Layer
from benchmarks.vectors.product import build_case

_GROUP: Final = {"secret": "ab" * 32, "agreement": "ef" * 32}
_NAMES: Final[dict[str, tuple[str, list[str]]]] = {
    "ids of rows": ("row", ["p-001", "p-002", "Łódź 3"]),
    "rows without ids": ("row", ["rows:178"]),
    "rows that nobody shares": ("row", []),
    "names of columns": ("column", ["age", "größe", "BMI"]),
    "names that join to the same text": ("column", ["ageg", "röße", "BMI"]),
}

_USUAL: Final = ["nfkc", "casefold", "spaces", "strip"]
_FORMS: Final[dict[str, tuple[str, list[str]]]] = {
    "white space: U+001C, U+0085 and U+2009 are some": (
        "\u001cp\u001c\u2009 1\u0085",
        ["spaces", "strip"],
    ),
    "white space: U+FEFF, U+200B and U+0000 are none": (
        "\ufeffp \u0000 \u200b1\ufeff",
        _USUAL,
    ),
    "outer white space that stays": ("  p  1 ", ["spaces"]),
    "case folding, and the form again": ("Stra\u00dfe \u0390 \uab70", _USUAL),
    "compatible forms": ("\ufb01\uff11 \u00bd", ["nfkc"]),
    "a composed form": ("A\u030a\ufb01", ["nfc"]),
    "no step": (" A\u030a ", []),
    "letters, marks and numbers": (
        "K-1/\u0661 \u0e01\u0e31\u00bd!",
        ["no-punctuation"],
    ),
    "digits are written 0 to 9": ("K\u0660\uff10\u00b2-7", ["digits"]),
    "leading zeros, in the order of the table": (
        "k-0012",
        ["zero-pad:6", "strip-zeros", "digits"],
    ),
    "zeros alone": ("000", ["strip-zeros"]),
    "what is empty is not filled up": ("none", ["digits", "zero-pad:4"]),
    "characters are code points": ("\U0001d7d812", ["zero-pad:4"]),
    "longer than it is filled up": ("12345", ["zero-pad:4"]),
    "two parts": ('["A ", "\\u00c4\\u001f"]', _USUAL),
    "a list of one text is a text": ('["A"]', _USUAL),
    "no list of texts": ('["A", 1]', _USUAL),
}


def build_layer() -> Layer:
    """Return the layer."""
    cases = [
        build_case(
            name, "11", "alignment-digest", {**_GROUP, "scope": scope, "names": names}
        )
        for name, (scope, names) in _NAMES.items()
    ]
    forms = [
        build_case(name, "11", "normal-form", {"id": text, "steps": steps})
        for name, (text, steps) in _FORMS.items()
    ]
    order: dict[str, Any] = {**_GROUP, "size": 12}
    return Layer(
        layer="alignment",
        about="Sections 9 and 11: ids, digests of ids and names, row order.",
        cases=[*cases, *forms, build_case("order of rows", "9", "row-order", order)],
    )
