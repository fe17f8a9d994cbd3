"""What a contribution holds, in words and numbers: to read before it is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from pydantic import BaseModel

from clustering_protocols.engine import packets
from clustering_protocols.numerics.randomness import length_prefixed

_AGREEING: Final = frozenset({"signed", "secrets-shared", "group-secret", "digests"})
"""Kinds by which members agree with each other: signatures, keys and keyed digests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayFacts:
    """An array that leaves: its name, shape, dtype, range and size."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    minimum: float | None
    maximum: float | None
    n_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeFacts:
    """An envelope that leaves: for whom, of which kind, how large."""

    receiver: str
    kind: str
    n_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """Everything in one contribution.

    ``digest`` is of all but what is sealed: sealed again, the same has other bytes.
    """

    stage: str
    round: int
    attempt: int
    kind: str
    values: dict[str, object]
    arrays: Sequence[ArrayFacts]
    envelopes: Sequence[EnvelopeFacts]
    n_bytes: int
    notes: Mapping[str, Any]
    asks: str = ""
    digest: str = ""

    @classmethod
    def of(
        cls, contribution: bytes, notes: Mapping[str, Any], asks: str = ""
    ) -> Inspection:
        """Return the facts of a contribution's bytes, and the protocol's own notes.

        ``asks`` is what the protocol lets leave only once somebody has agreed to it.
        """
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
                    n_bytes=array.nbytes,
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
            asks=asks,
            digest=_open_part(packet),
        )

    @property
    def only_agrees(self) -> bool:
        """Return whether members only agree with each other: no value leaves."""
        kinds = {envelope.kind for envelope in self.envelopes}
        is_empty = not self.values and not self.arrays
        return kinds <= _AGREEING and (
            self.kind in _AGREEING or (is_empty and not kinds)
        )


class RehearsedRound(BaseModel):
    """What would leave in one round, or in several rounds of one kind.

    first, last, n: the first and the last of these rounds, from 1, and how many there
        are.
    example: the contribution of the first.
    n_bytes: of all of them.
    """

    first: int
    last: int
    n: int
    example: Inspection
    n_bytes: int


class Rehearsal(BaseModel):
    """How a rehearsal went.

    n_rows: of the own table, as it arrives.
    seconds: of the own party, on this machine.
    notes: what protocols tell their operator: self-checks.
    asks: what a person would have to agree to by name.
    """

    session: str
    slot: str
    protocol: str
    n_rows: int
    rounds: int
    n_bytes: int
    seconds: float
    left: tuple[RehearsedRound, ...]
    notes: dict[str, Any]
    asks: tuple[str, ...]


def _open_part(packet: packets.Packet) -> str:
    parts = [packet.header.model_dump_json().encode()]
    for name, array in sorted(packet.arrays.items()):
        parts += [f"{name} {array.dtype} {array.shape}".encode(), array.tobytes()]
    return sha256(length_prefixed(*parts)).hexdigest()
