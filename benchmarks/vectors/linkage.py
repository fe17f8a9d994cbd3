"""Layer: values of match keys, and points of them under masks that are known."""

from __future__ import annotations

from benchmarks.vectors.form import Layer, VectorCase
from benchmarks.vectors.intersection import BLINDING, KEY, NONE, PLACE
from benchmarks.vectors.product import answer, build_case, restate


def build_layer() -> Layer:
    """Return the layer."""
    return Layer(
        layer="linkage",
        about="Section 11: values of match keys, their points and tokens.",
        cases=[*restate("linkage", "match-values"), *_points()],
    )


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
