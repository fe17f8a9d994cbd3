"""Layer: points and tokens of ids, under scalars that are known."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.vectors.form import Layer
from benchmarks.vectors.product import answer, build_case

PLACE: Final[dict[str, Any]] = {"session": "wards", "agreement": "ef" * 32, "row": 1}
KEY: Final = bytes(range(64)).hex()
BLINDING: Final = bytes(range(255, 191, -1)).hex()
NONE: Final = {
    "what encodes no point": "ff" * 32,
    "the neutral element": "00" * 32,
}
_IDS: Final = {"an id": '["p-001"]', "an id beyond ASCII": '["łódź 3"]'}


def build_layer() -> Layer:
    """Return the layer."""
    cases = []
    for name, text in _IDS.items():
        blind = {**PLACE, "id": text, "scalar": BLINDING}
        blinded = _ask("blind-id", blind)
        answered = _ask("evaluate-id", {"scalar": KEY, "point": blinded})
        cases += [
            build_case(f"{name}, blinded", "11", "blind-id", blind),
            build_case(
                f"{name}, evaluated",
                *("11", "evaluate-id", {"scalar": KEY, "point": blinded}),
            ),
            build_case(
                f"{name}, value and token",
                *("11", "unblind-id", {**blind, "point": answered}),
            ),
        ]
    for name, point in NONE.items():
        asked = {"scalar": KEY, "point": point}
        answer_ = {**PLACE, "id": _IDS["an id"], **asked}
        cases += [
            build_case(name, "11", "evaluate-id", asked, fails="guard-refused"),
            build_case(name, "11", "unblind-id", answer_, fails="protocol-failed"),
        ]
    return Layer(
        layer="intersection",
        about="Section 11: ids as points of ristretto255, and their tokens.",
        cases=cases,
    )


def _ask(call: str, given: dict[str, Any]) -> str:
    output, _ = answer(call, given)
    return str((output or {})["point"])
