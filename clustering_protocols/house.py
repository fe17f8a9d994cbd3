"""Risks that belong to no protocol: what a session's own set-up lets others do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clustering_protocols.terms import Identities, Layout

PREFIX: Final = "house"

RISKS: Final[Mapping[str, str]] = {
    "open-slot": (
        "The terms name no institution for some slot: whoever holds an invitation to it "
        "may sit there under any name, and an analyst who works together with one party, "
        "or with the coordinator, may sit in all such slots but yours and read what you "
        "send them."
    ),
}


def risks_of(layout: Layout, identities: Identities) -> tuple[str, ...]:
    """Return the codes, without the prefix, that layout and identities bring."""
    is_open = any(name not in identities.slots for name in layout.names)
    return ("open-slot",) if is_open else ()
