"""A description of a contribution, for the operator to review before it is sent."""

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
    """Properties of an array in a contribution: shape, dtype, range and size."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    minimum: float | None
    maximum: float | None
    n_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvelopeFacts:
    """Properties of an envelope in a contribution: receiver, kind and size."""

    receiver: str
    kind: str
    n_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SentPart:
    """One kind of record in a contribution, with its meaning and its readers.

    receiver: the analyst, or the slots that can open the envelopes with this record.
    """

    kind: str
    meaning: str
    reach: Reach
    receiver: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """A complete description of one contribution.

    digest: the digest of everything except the envelopes, whose bytes differ each time
        that the same content is sealed.
    parts: the records in the contribution, by kind; empty for an answer without data.
    tables: the contents that the analyst can read, as tables.
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
        """Return a description of a contribution's bytes.

        notes: the protocol's own notes for the operator.
        asks: the question to the operator, who has to agree before the bytes are sent.
        records: the kinds of record that the contribution may contain; each kind
            defines the meaning that is shown.
        """
        packet = packets.parse(contribution)
        record = packet.header.record
        header = packet.header.model_dump_json()  # without the record
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
            digest=sha256(length_prefixed(header, packet.content_digest)).hexdigest(),
            parts=tuple(_describe_parts(packet, records)),
            tables=_readable_tables(packet, records),
        )

    @property
    def reach(self) -> Reach:
        """Return the reach of the part that the most readers can read."""
        reaches = {part.reach for part in self.parts}
        return next((reach for reach in REACHES if reach in reaches), "agreement")

    @property
    def sentence(self) -> str:
        """Return one text with the meaning of each part."""
        return " ".join(dict.fromkeys(part.meaning for part in self.parts))


def _describe_parts(
    packet: packets.Packet, records: Sequence[type[Record]]
) -> Iterator[SentPart]:
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


def _readable_tables(
    packet: packets.Packet, records: Sequence[type[Record]]
) -> tuple[ReadableTable, ...]:
    answer = packet.header.record
    for record in records:
        if record.kind == answer["kind"] and record.reach == "readable":
            return record.parse(answer, packet.arrays).tables
    return ()


class RehearsedRound(BaseModel):
    """The contributions of one round, or of several rounds of the same kind.

    first, last: the numbers of the first and the last round, counted from 1.
    n: the number of rounds.
    example: the contribution in the first round.
    n_bytes: the size of all contributions together.
    """

    first: int
    last: int
    n: int
    example: Inspection
    n_bytes: int


class Rehearsal(BaseModel):
    """The result of a rehearsal, in which a party plays a whole session by itself.

    n_rows: the number of participating rows in this party's table.
    seconds: the computing time of this party on this machine.
    left: what would leave this machine, round by round.
    notes: the protocol's checks of its own computation, for the operator.
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
