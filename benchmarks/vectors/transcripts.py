"""Layer: lines of the transcript, and the signatures of opening and closing."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.vectors.form import Layer, VectorCase
from benchmarks.vectors.product import build_case, restate
from clustering_protocols.engine import signatures
from clustering_protocols.secrecy.keys import PartyKeys

_OTHER: Final = "ab" * 32
_SLOTS: Final = ("north", "south", "west")


def build_layer() -> Layer:
    """Return the layer."""
    return Layer(
        layer="transcript",
        about="Section 7: what everybody is told, and who signs it.",
        cases=[*restate("transcript", "follow"), *_signature_cases()],
    )


def _signature_cases() -> list[VectorCase]:
    followed = restate("transcript", "follow")[0]
    transcript = str((followed.output or {})["transcript"])
    keys = {slot: PartyKeys(bytes(32), "wards", slot) for slot in _SLOTS}
    public = {slot: each.public.ed25519 for slot, each in keys.items()}
    said = signatures.bytes_to_sign("opening", transcript)
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
