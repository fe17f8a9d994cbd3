"""Layer: envelopes to open. Sealing draws random bytes, so it is not compared."""

from __future__ import annotations

from typing import Any, Final

from benchmarks.vectors.form import Layer
from benchmarks.vectors.product import build_case
from clustering_protocols.secrecy.envelopes import Binding, seal
from clustering_protocols.secrecy.keys import PartyKeys
from clustering_protocols.shared_stages.secrets import GroupSecret

_SESSION: Final = "wards"


def build_layer() -> Layer:
    """Return the layer."""
    sender, receiver, third = (
        PartyKeys(bytes(32), _SESSION, slot) for slot in ("north", "south", "west")
    )
    place: dict[str, Any] = {
        "transcript": "cd" * 32,
        "session": _SESSION,
        "stage": "secrets",
        "round": 2,
        "attempt": 1,
        "sender": "north",
        "receiver": "south",
        "kind": "group-secret",
    }
    content = GroupSecret(scope="row", secret="ab" * 32).encode()
    sealed = seal(content, Binding(**place), sender, receiver.public)
    given = {
        **place,
        "envelope": sealed.hex(),
        "private": receiver.opening.private_bytes_raw().hex(),
        "sender_ed25519": sender.public.ed25519,
    }
    last = f"{sealed[-1] ^ 1:02x}"
    changes: dict[str, dict[str, Any]] = {
        **{
            f"another {name}": {name: "other" if isinstance(old, str) else old + 1}
            for name, old in place.items()
        },
        "a bit of the sealed bytes": {"envelope": sealed.hex()[:-2] + last},
        "a foreign signature": {"sender_ed25519": third.public.ed25519},
        "another receiver's key": {"private": third.opening.private_bytes_raw().hex()},
        "signed, and sealed to somebody else": {
            "envelope": seal(content, Binding(**place), sender, third.public).hex()
        },
        "shorter than a signature": {"envelope": sealed.hex()[:120]},
    }
    return Layer(
        layer="envelopes",
        about="Section 8: an envelope to open, and what must not open.",
        cases=[
            build_case("a group secret", "8", "open-envelope", given),
            *(
                build_case(
                    *(name, "8", "open-envelope", {**given, **change}),
                    fails="envelope-refused",
                )
                for name, change in changes.items()
            ),
        ],
    )
