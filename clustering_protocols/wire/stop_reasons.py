"""What the words say in which a party tells others why it stopped for good."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from clustering_protocols.wire.states import StopReason

_SENTENCES: Final[Mapping[StopReason, str]] = MappingProxyType(
    {
        StopReason.LEFT: "its people take part no more",
        StopReason.REFUSED: "it refused what it was asked, or what it was sent",
        StopReason.DATA: "its rows cannot be used",
        StopReason.SOFTWARE: "its program cannot go on",
    }
)


def describe_stop(slot: str, reason: StopReason) -> str:
    """Return the sentence that others read of a party that stopped."""
    return f"Slot {slot!r} stopped for good ({reason}): {_SENTENCES[reason]}."
