"""What the words say in which a party tells others why it stopped."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from clustering_protocols.wire.states import StopReason

_SENTENCES: Final[Mapping[StopReason, str]] = MappingProxyType(
    {
        StopReason.HELD: "a limit of its own or its people hold it, and it may go on",
        StopReason.LEFT: "its people take part no more",
        StopReason.REFUSED: "it refused what it was asked, or what it was sent",
        StopReason.DATA: "its rows cannot be used",
        StopReason.SOFTWARE: "its program cannot go on",
    }
)


def describe_stop(slot: str, reason: StopReason) -> str:
    """Return the sentence that others read of a party that stopped."""
    return f"Slot {slot!r} stopped for good ({reason}): {_SENTENCES[reason]}."


def summarise_stop(reason: StopReason | None) -> str:
    """Return what stands beside a slot whose party stopped; empty where it has not."""
    if reason is None:
        return ""
    if reason is StopReason.HELD:
        return f"{reason}: {_SENTENCES[reason]}"
    return f"stopped for good: {reason}"
