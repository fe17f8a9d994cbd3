"""Packets: a record under way, with where it belongs and the envelopes beside it.

A task goes from the analyst to a party, a contribution back, a result at the end. The
header says session, agreement, slot, stage, round and attempt, so that a packet that is
replayed elsewhere is refused; a task also says which contribution it expects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError
from typing_extensions import Buffer

from clustering_protocols import codec
from clustering_protocols.contract import Stage
from clustering_protocols.errors import AgreementMismatch, Malformed, RoundClosed
from clustering_protocols.records import Record
from clustering_protocols.rounds import RoundRef

_ENVELOPE = "envelope."


class _HeaderPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class EnvelopeLabel(RoundRef):
    """What stands on an envelope: the other side, the kind, and when it was sealed."""

    peer: str
    kind: str


class Expectation(_HeaderPart):
    """The contribution that answers a task: its kind and the sizes of its arrays."""

    kind: str
    dims: dict[str, int] = {}


class Address(RoundRef):
    """Where a packet belongs."""

    session: str
    agreement: str
    slot: str


class Header(_HeaderPart):
    """Everything in a packet but its arrays."""

    address: Address
    record: dict[str, Any]
    expects: Expectation | None = None
    envelopes: list[EnvelopeLabel] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """A sealed record and its label."""

    label: EnvelopeLabel
    sealed: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """A packet whose record has not been interpreted yet."""

    header: Header
    arrays: codec.Arrays = field(repr=False)
    envelopes: Sequence[Envelope] = ()

    @property
    def address(self) -> Address:
        """Return where the packet belongs."""
        return self.header.address

    def read(self, kinds: Iterable[type[Record]]) -> Record:
        """Return the record; :class:`Malformed` unless it is of one of these kinds."""
        kind = self.header.record.get("kind")
        for known in kinds:
            if known.kind == kind:
                return known.parse(self.header.record, self.arrays)
        raise Malformed("A record of that kind has no place here.")


def write(
    address: Address,
    record: Record,
    *,
    expects: Expectation | None = None,
    envelopes: Sequence[Envelope] = (),
) -> bytes:
    """Return a packet's bytes."""
    header = Header(
        address=address,
        record=record.header(),
        expects=expects,
        envelopes=[envelope.label for envelope in envelopes],
    )
    return _encode(header, record.arrays, envelopes)


def read(buffer: Buffer) -> Packet:
    """Return the packet in a buffer; arrays are views of it.

    Raises
    ------
    Malformed, InvalidArray
        If the bytes are not a packet.
    """
    raw, arrays = codec.decode(buffer)
    try:
        header = Header.model_validate(raw)
    except ValidationError as error:
        finding = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in finding["loc"])
        raise Malformed(f"Header, {place}: {finding['msg']}.") from None
    sealed = [arrays.pop(f"{_ENVELOPE}{i}", None) for i in range(len(header.envelopes))]
    if any(item is None or item.dtype != np.uint8 for item in sealed) or any(
        name.startswith(_ENVELOPE) for name in arrays
    ):
        raise Malformed("The envelopes do not match their labels.")
    envelopes = [
        Envelope(label=label, sealed=item.tobytes())
        for label, item in zip(header.envelopes, sealed, strict=True)
        if item is not None
    ]
    return Packet(header=header, arrays=arrays, envelopes=envelopes)


def restamp(buffer: Buffer, attempt: int) -> bytes:
    """Return the same task under another attempt number."""
    packet = read(buffer)
    address = packet.address.model_copy(update={"attempt": attempt})
    header = packet.header.model_copy(update={"address": address})
    return _encode(header, packet.arrays, packet.envelopes)


def check_answers(task: Packet, contribution: Packet, stage: Stage) -> Record:
    """Return the contribution's record if it is what the task asks for.

    The same check runs at the party before it sends and at the analyst on arrival.

    Raises
    ------
    RoundClosed, AgreementMismatch, Malformed, InvalidArray
        If it belongs elsewhere, or is of another kind or size.
    """
    asked, given = task.address, contribution.address
    if (given.round, given.attempt) != (asked.round, asked.attempt):
        raise RoundClosed(
            f"Open is round {asked.round}, attempt {asked.attempt}; the message says "
            f"round {given.round}, attempt {given.attempt}."
        )
    if given != asked:
        wrong = [
            name
            for name in type(asked).model_fields
            if getattr(given, name) != getattr(asked, name)
        ]
        raise AgreementMismatch(f"The message differs in {', '.join(wrong)}.")
    answer = stage.answer_to(task.read(stage.tasks).kind)
    expected = task.header.expects
    if expected is None or expected.kind != answer.kind:
        raise Malformed(f"The task does not ask for a {answer.kind!r}.")
    record = contribution.read([answer])
    record.require(expected.dims)
    return record


def _encode(
    header: Header, arrays: codec.Arrays, envelopes: Sequence[Envelope]
) -> bytes:
    sealed: Mapping[str, Any] = {
        f"{_ENVELOPE}{index}": np.frombuffer(envelope.sealed, np.uint8)
        for index, envelope in enumerate(envelopes)
    }
    return codec.encode(header.model_dump(mode="json"), {**arrays, **sealed})
