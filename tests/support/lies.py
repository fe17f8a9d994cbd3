"""Messages with some of their content replaced: what a liar would send."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from clustering_protocols import engine, packets
from clustering_protocols.simulation import Session

Change = Callable[[Any], Mapping[str, Any]]


def alter(agreement: bytes, message: bytes, change: Change) -> bytes:
    """Return a message with fields of its record replaced."""
    _, stages = engine.load(agreement)
    packet = packets.read(message)
    stage = next(s for s in stages if s.name == packet.address.stage)
    record = packet.read(stage.records)
    lie = type(record).model_validate(dict(record) | dict(change(record)))
    return packets.write(
        packet.address,
        lie,
        expects=packet.header.expects,
        envelopes=packet.envelopes,
    )


def altered(session: Session, slot: str, change: Change) -> bytes:
    """Return a slot's open task with fields of its record replaced by the analyst."""
    return alter(session.agreement, session.open.tasks[slot], change)


def moved(task: bytes, **address: Any) -> bytes:
    """Return a task under another round or attempt, envelopes and all."""
    packet = packets.read(task)
    other = packet.address.model_copy(update=address)
    header = packet.header.model_copy(update={"address": other})
    return packets._encode(header, packet.arrays, packet.envelopes)
