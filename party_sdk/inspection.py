"""What a contribution holds, in words and numbers: to read before it is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clustering_protocols import packets


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayFacts:
    """An array that leaves: its name, shape, dtype and range."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    minimum: float | None
    maximum: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeFacts:
    """An envelope that leaves: for whom, of which kind, how large."""

    receiver: str
    kind: str
    n_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """Everything in one contribution."""

    stage: str
    round: int
    attempt: int
    kind: str
    values: dict[str, object]
    arrays: Sequence[ArrayFacts]
    envelopes: Sequence[EnvelopeFacts]
    n_bytes: int
    notes: Mapping[str, Any]

    @classmethod
    def of(cls, contribution: bytes, notes: Mapping[str, Any]) -> Inspection:
        """Return the facts of a contribution's bytes, and the protocol's own notes."""
        packet = packets.read(contribution)
        record = packet.header.record
        return cls(
            stage=packet.address.stage,
            round=packet.address.round,
            attempt=packet.address.attempt,
            kind=record["kind"],
            values=record["values"],
            arrays=[
                ArrayFacts(
                    name=name,
                    shape=array.shape,
                    dtype=str(array.dtype),
                    minimum=float(array.min()) if array.size else None,
                    maximum=float(array.max()) if array.size else None,
                )
                for name, array in sorted(packet.arrays.items())
            ],
            envelopes=[
                EnvelopeFacts(
                    receiver=envelope.label.peer,
                    kind=envelope.label.kind,
                    n_bytes=len(envelope.sealed),
                )
                for envelope in packet.envelopes
            ],
            n_bytes=len(contribution),
            notes=notes,
        )
