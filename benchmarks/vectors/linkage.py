"""Layer: values of match keys, and points of them under masks that are known."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.vectors.form import Layer, VectorCase
from benchmarks.vectors.intersection import BLINDING, KEY, NONE, PLACE
from benchmarks.vectors.product import answer, build_case
from clustering_protocols.shared_stages.alignment.identifiers import join

_DATES: Final = (
    "1999-03-31",
    "1.4.1999",
    "04/31/1999",
    "04/30/1999",
    "19990229",
    "2000112",
    "112 2001 10:00",
    "1799-12-31",
    "12101850",
    "1850/10/13t08",
    "\u0661\u0669\u0660\u0661-1-1",
    "31.03.99",
)
_PEOPLE: Final = (
    ("Ana María", "De la Cruz", "1999-03-31"),
    ("maría ana", "de  la cruz", "1.4.1999"),
    ("Ida", "", "1970-01-01"),
    ("Ida", "Grün-Weiß", "none"),
    ("Olga\u001f2", "Bach", "1970-01-02"),
)
_STAND_INS: Final = [
    *(join((f"name {n}", f"1970-01-{n:02}")) for n in range(1, 10)),
    *(join((f"name {n}", "1900-01-01")) for n in range(10, 14)),
    join(("Unknown", "1970-02-01")),
]
_KEYS: Final[dict[str, list[str]]] = {
    "several keys of several columns": [
        "given, family | sorted-names + birth | date",
        "family | first:4 + birth | year-month",
        "birth | month-day",
    ],
    "steps go in the order in which they are written": [
        "given | zero-pad:6 | first:3 + family + birth",
        "given | first:3 | zero-pad:6 + family + birth",
    ],
    "letters, numbers and marks of names": [
        "given | no-punctuation + birth | digits | strip-zeros + family | sorted-names"
    ],
}


def build_layer() -> Layer:
    """Return the layer."""
    people = [join(person) for person in _PEOPLE]
    alone = {"match_keys": ["given"]}
    cases = [
        *(
            build_case(name, "11", "match-values", _values(people, keys))
            for name, keys in _KEYS.items()
        ),
        *(
            build_case(f"dates: {step}", "11", "match-values", _values(_DATES, [key]))
            for step in ("date", "year", "month", "day", "year-month", "month-day")
            for key in [f"birth | {step}"]
        ),
        build_case(
            "cells that stand for no value",
            *("11", "match-values", _values(_STAND_INS, ["name + birth | date"])),
        ),
        build_case(
            "values that too many rows share",
            *("11", "match-values", {"ids": ["a", "A ", "b"], "alignment": alone}),
            fails="invalid-data",
        ),
        build_case(
            "an id of fewer parts than columns",
            *("11", "match-values", _values(["a"], ["given + birth"])),
            fails="invalid-data",
        ),
        *_points(),
    ]
    return Layer(
        layer="linkage",
        about="Section 11: values of match keys, their points and tokens.",
        cases=cases,
    )


def _values(ids: list[str] | tuple[str, ...], keys: list[str]) -> dict[str, Any]:
    return {
        "ids": list(ids),
        "alignment": {"match_keys": keys, "key_uniqueness": 0.0},
    }


def _points() -> list[VectorCase]:
    value = {**PLACE, "key": 1, "value": "ana cruz\x1f1999-03-31", "scalar": BLINDING}
    output, _ = answer("mask-value", value)
    again = {**PLACE, "point": (output or {})["point"], "scalar": KEY}
    return [
        build_case("a value under one mask", "11", "mask-value", value),
        build_case("under two masks, and its token", "11", "mask-point", again),
        *(
            build_case(
                name,
                *("11", "mask-point", {**again, "point": point}),
                fails="guard-refused",
            )
            for name, point in NONE.items()
        ),
    ]
