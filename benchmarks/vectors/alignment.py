"""Layer: keyed digests of ids and names, and the order of rows."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.vectors.product import build_case
from party_sdk.conformance.vectors import Layer

_GROUP: Final = {"secret": "ab" * 32, "agreement": "ef" * 32}
_NAMES: Final[dict[str, tuple[str, list[str]]]] = {
    "ids of rows": ("row", ["p-001", "p-002", "Łódź 3"]),
    "rows without ids": ("row", ["rows:178"]),
    "rows that nobody shares": ("row", []),
    "names of columns": ("column", ["age", "größe", "BMI"]),
    "names that join to the same text": ("column", ["ageg", "röße", "BMI"]),
}


def build_layer() -> Layer:
    """Return the layer."""
    cases = [
        build_case(
            name, "11", "alignment-digest", {**_GROUP, "scope": scope, "names": names}
        )
        for name, (scope, names) in _NAMES.items()
    ]
    order: dict[str, Any] = {**_GROUP, "size": 12}
    return Layer(
        layer="alignment",
        about="Sections 9 and 11: keys of groups, digests of ids and names, row order.",
        cases=[*cases, build_case("order of rows", "9", "row-order", order)],
    )
