"""Layer: lines of the transcript, and the signatures of opening and closing."""

from __future__ import annotations

import json
from typing import Any, Final

from benchmarks.vectors.form import Layer, VectorCase
from benchmarks.vectors.product import build_case
from clustering_protocols.engine import signatures
from clustering_protocols.records import hash_chain
from clustering_protocols.secrecy.keys import PartyKeys

_AGREEMENT: Final = "ef" * 32
_OTHER: Final = "ab" * 32
_SLOTS: Final = ("north", "south", "west")


def build_layer() -> Layer:
    """Return the layer."""
    lines = _lines()
    transcript = hash_chain.digest(lines[-1])
    return Layer(
        layer="transcript",
        about="Section 7: what everybody is told, and who signs it.",
        cases=[*_followed(lines), *_refused(lines), *_signed(transcript)],
    )


def _lines() -> list[str]:
    """Return the agreement, an opening, a round of row groups, and its new attempt."""
    lines = [hash_chain.write(None, 1, {"agreement": _AGREEMENT})]
    for said in (
        _said("opening", 1, 1, "sign", [], ["00" * 32]),
        _said("updates", 2, 1, "update", [], ["11" * 32, "22" * 32]),
        _said("updates", 2, 2, "update", ["south"], ["33" * 32, ""]),
    ):
        lines.append(hash_chain.write(lines[-1], len(lines) + 1, said))
    return lines


def _said(
    stage: str, round_: int, attempt: int, asks: str, out: list[str], told: list[str]
) -> dict[str, Any]:
    return {
        "stage": stage,
        "round": round_,
        "attempt": attempt,
        "asks": asks,
        "left_out": out,
        "told": told,
    }


_START: Final = {"number": 0, "digest": hash_chain.START}


def _given(lines: list[str], known: dict[str, Any] = _START) -> dict[str, Any]:
    return {"lines": lines, "agreement": _AGREEMENT, "known": known}


def _followed(lines: list[str]) -> list[VectorCase]:
    known = {"number": 2, "digest": hash_chain.digest(lines[1])}
    given = {
        "from the first line": _given(lines),
        "after a line that is known": _given(lines[2:], known),
        "lines that are known come again": _given(lines[1:], known),
    }
    return [build_case(name, "7", "follow", each) for name, each in given.items()]


def _refused(lines: list[str]) -> list[VectorCase]:
    known = {"number": 2, "digest": hash_chain.digest(lines[1])}
    spaced = json.dumps(json.loads(lines[2]), ensure_ascii=False)
    extra = json.dumps({**json.loads(lines[1]), "more": 1})
    given = {
        "another agreement": {**_given(lines), "agreement": _OTHER},
        "a line was changed": _given(
            [lines[0], lines[1].replace("00", "01", 1), *lines[2:]]
        ),
        "a line was left out": _given([lines[0], *lines[2:]]),
        "two lines were exchanged": _given([lines[0], lines[2], lines[1]]),
        "the same line, written otherwise": _given([*lines[:2], spaced, lines[3]]),
        "another past than before": _given(lines[1:], {**known, "digest": _OTHER}),
        "a line that is missing": _given(lines[3:], known),
        "a field too many": _given([lines[0], extra]),
        "a line that is not JSON": _given([lines[0], "{"]),
    }
    return [
        build_case(name, "7", "follow", each, fails="task-refused")
        for name, each in given.items()
    ]


def _signed(transcript: str) -> list[VectorCase]:
    keys = {slot: PartyKeys(bytes(32), "wards", slot) for slot in _SLOTS}
    public = {slot: each.public.ed25519 for slot, each in keys.items()}
    said = signatures.statement("opening", transcript)
    signed = [each.signing.sign(said).hex() for each in keys.values()]
    private = keys["south"].signing.private_bytes_raw().hex()
    given = {
        "stage": "opening",
        "transcript": transcript,
        "keys": public,
        "signatures": signed,
        "least": 3,
    }
    absent = [*signed[:2], "00" * 64]
    enough: dict[str, dict[str, Any]] = {
        "all have signed": {},
        "one of three is absent where two are enough": {
            "signatures": absent,
            "least": 2,
        },
    }
    wrong: dict[str, dict[str, Any]] = {
        "one of three is absent where all are needed": {"signatures": absent},
        "another transcript": {"transcript": _OTHER},
        "another stage": {"stage": "closing"},
        "two signatures were exchanged": {
            "signatures": [signed[1], signed[0], signed[2]]
        },
        "one signature too few": {"signatures": signed[:2]},
    }
    return [
        *(
            build_case(
                f"of the {stage}",
                "7",
                "sign-transcript",
                {"private": private, "stage": stage, "transcript": transcript},
            )
            for stage in ("opening", "closing")
        ),
        *(
            build_case(
                name, "7", "check-signatures", {**given, **change}, fails=problem
            )
            for changes, problem in ((enough, ""), (wrong, "protocol-failed"))
            for name, change in changes.items()
        ),
    ]
