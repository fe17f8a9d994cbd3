"""The contents of a contribution in words and numbers, to read before it is sent."""

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
    """An array of a contribution: its name, shape, dtype, range and size."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    minimum: float | None
    maximum: float | None
    n_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeFacts:
    """An envelope of a contribution: its receiver, kind and size."""

    receiver: str
    kind: str
    n_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SentPart:
    """One kind of record in a contribution: its meaning, and who can read it.

    receiver: the analyst, or the slots for which it is sealed.
    """

    kind: str
    meaning: str
    reach: Reach
    receiver: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """Everything in one contribution.

    digest: of all but the envelopes: sealing the same content again changes those.
    parts: the records in it, by kind; empty for an answer that carries no data.
    tables: what the analyst can read of it, as tables.
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
        """Return what a contribution's bytes contain, with the protocol's own notes.

        asks: the question to which the operator has to agree before the bytes are sent.
        records: the kinds of record that it may hold, with their meanings.
        """
        packet = packets.read(contribution)
        record = packet.header.record
        content = [packet.header.model_dump_json().encode()]
        for name, array in sorted(packet.arrays.items()):
            content.append(f"{name} {array.dtype} {array.shape}".encode())
            content.append(array.tobytes())
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
            digest=sha256(length_prefixed(*content)).hexdigest(),
            parts=tuple(_parts(packet, records)),
            tables=_tables(packet, records),
        )

    @property
    def reach(self) -> Reach:
        """Return the widest reach of any part."""
        reaches = {part.reach for part in self.parts}
        return next((reach for reach in REACHES if reach in reaches), "agreement")

    @property
    def sentence(self) -> str:
        """Return the meaning of each part, as sentences."""
        return " ".join(dict.fromkeys(part.meaning for part in self.parts))


def _parts(
    packet: packets.Packet, records: Sequence[type[Record]]
) -> Iterator[SentPart]:
    """Yield a part for each kind of record; an empty answer has none."""
    slots: dict[str, list[str]] = {}
    for envelope in packet.envelopes:
        slots.setdefault(envelope.label.kind, []).append(envelope.label.peer)
    receivers = [(kind, ", ".join(names)) for kind, names in slots.items()]
    answer = packet.header.record
    has_items = any(array.size for array in packet.arrays.values())
    if has_items or (answer["values"] and not packet.arrays):
        receivers.insert(0, (answer["kind"], "the analyst"))
    record_by_kind = {record.kind: record for record in records}
    for kind, receiver in receivers:
        record = record_by_kind.get(kind, Record)
        meaning = record.meaning or f"A message of the kind {kind!r}."
        yield SentPart(
            kind=kind, meaning=meaning, reach=record.reach, receiver=receiver
        )


def _tables(
    packet: packets.Packet, records: Sequence[type[Record]]
) -> tuple[ReadableTable, ...]:
    """Return the tables that the analyst can read in an answer."""
    answer = packet.header.record
    for record in records:
        if record.kind == answer["kind"] and record.reach == "readable":
            return record.parse(answer, packet.arrays).tables
    return ()


class RehearsedRound(BaseModel):
    """The contributions of one round, or of several rounds of one kind.

    first, last, n: the first and the last of these rounds, from 1, and their number.
    example: the contribution of the first of them.
    n_bytes: the bytes of all these contributions.
    """

    first: int
    last: int
    n: int
    example: Inspection
    n_bytes: int


class Rehearsal(BaseModel):
    """The result of a rehearsal.

    n_rows: the rows of this party's table that take part.
    seconds: computing time of this party on this machine.
    notes: self-checks of protocols, for the operator.
    asks: questions to which the operator would have to agree.
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
