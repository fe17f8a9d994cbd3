"""What a contribution holds, in words and numbers: to read before it is sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from pydantic import BaseModel

from clustering_protocols.engine import packets
from clustering_protocols.numerics.randomness import length_prefixed
from clustering_protocols.records.record import REACHES, Reach, ReadableTable, Record


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
class SentPart:
    """One kind of what leaves: what it means, and who can read it.

    receiver: the analyst, or the slots for which it is sealed.
    """

    kind: str
    meaning: str
    reach: Reach
    receiver: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """Everything in one contribution.

    digest: of all but what is sealed: sealed again, the same has other bytes.
    parts: what leaves, kind by kind; nothing where it only says that it is done.
    tables: what somebody can read of it.
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
    parts: Sequence[SentPart] = ()
    tables: Sequence[ReadableTable] = ()

    @classmethod
    def of(
        cls,
        contribution: bytes,
        notes: Mapping[str, Any],
        asks: str = "",
        records: Sequence[type[Record]] = (),
    ) -> Inspection:
        """Return the facts of a contribution's bytes, and the protocol's own notes.

        asks: what the protocol lets leave only once somebody has agreed to it.
        records: the kinds that it may hold; what they mean is said of these alone.
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
            parts=tuple(_parts(packet, records)),
            tables=_tables(packet, records),
        )

    @property
    def reach(self) -> Reach:
        """Return how far the part reaches that most can read."""
        found = {part.reach for part in self.parts}
        return next((reach for reach in REACHES if reach in found), "agreement")

    @property
    def sentence(self) -> str:
        """Return what leaves, a sentence for each part."""
        return " ".join(dict.fromkeys(part.meaning for part in self.parts))


def _parts(
    packet: packets.Packet, records: Sequence[type[Record]]
) -> Iterator[SentPart]:
    """Yield the kinds that leave; an answer of empty arrays, or of nothing, says none."""
    known = {record.kind: record for record in records}
    answer = packet.header.record
    full = any(array.size for array in packet.arrays.values())
    if full or (answer["values"] and not packet.arrays):
        yield _part(answer["kind"], known, "the analyst")
    receivers: dict[str, list[str]] = {}
    for envelope in packet.envelopes:
        receivers.setdefault(envelope.label.kind, []).append(envelope.label.peer)
    for kind, slots in receivers.items():
        yield _part(kind, known, ", ".join(slots))


def _part(kind: str, known: Mapping[str, type[Record]], receiver: str) -> SentPart:
    record = known.get(kind, Record)
    meaning = record.meaning or f"A message of the kind {kind!r}."
    return SentPart(kind=kind, meaning=meaning, reach=record.reach, receiver=receiver)


def _tables(
    packet: packets.Packet, records: Sequence[type[Record]]
) -> tuple[ReadableTable, ...]:
    """Return what the analyst can read of an answer; what is sealed is not opened."""
    answer = packet.header.record
    for record in records:
        if record.kind == answer["kind"] and record.reach == "readable":
            return record.parse(answer, packet.arrays).tables
    return ()


class RehearsedRound(BaseModel):
    """What would be sent in one round, or in several rounds of one kind.

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
