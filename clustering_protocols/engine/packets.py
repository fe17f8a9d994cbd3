"""Packets: a record under way, with where it belongs and the envelopes beside it.

A task goes from the analyst to a party, a contribution back, a result at the end. The
header says session, agreement, slot, stage, round and attempt, so that a packet that is
replayed elsewhere is refused; a task also says which contribution it expects, and
what everybody was told since the receiver's last answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError
from typing_extensions import Buffer

from clustering_protocols.common.errors import Malformed
from clustering_protocols.records import codec
from clustering_protocols.records.arrays import ByteArray
from clustering_protocols.records.record import Record
from clustering_protocols.records.rounds import RoundRef

_ENVELOPE = "envelope."
_HISTORY = "transcript.lines"
_SIGNATURES = "transcript.signatures"
SIGNATURE_BYTES: Final = 64


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


Mail: TypeAlias = Sequence[tuple[str, Envelope]]
"""Receivers, each with an envelope whose label names the sender."""

_NO_LINES: Final[ByteArray] = np.empty(0, np.uint8)
UNSIGNED: Final[ByteArray] = np.empty((0, SIGNATURE_BYTES), np.uint8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """A packet whose record has not been interpreted yet.

    arrays: mapping of str to ndarray; of the record.
    history: lines of the transcript, in a packet to a party.
    signatures: uint8 (s, 64); of all slots, zeros for those that have not signed; s is
        0 where none are told.
    """

    header: Header
    arrays: codec.Arrays = field(repr=False)
    envelopes: Sequence[Envelope] = ()
    history: Sequence[str] = field(default=(), repr=False)
    signatures: ByteArray = field(default_factory=lambda: UNSIGNED, repr=False)

    @property
    def address(self) -> Address:
        """Return where the packet belongs."""
        return self.header.address

    def record_digest(self, without: Collection[str] = ()) -> str:
        """Return a digest of the record but for some fields: see :func:`digest_of`."""
        return digest_of(self.header.record, self.arrays, without)

    def restamp(self, attempt: int) -> Packet:
        """Return the same packet under another attempt number."""
        address = self.address.model_copy(update={"attempt": attempt})
        header = self.header.model_copy(update={"address": address})
        return replace(self, header=header)

    def forward(self) -> Mail:
        """Return a contribution's envelopes, each with its sender on the label."""
        sender = {"peer": self.address.slot}
        return [
            (
                sent.label.peer,
                replace(sent, label=sent.label.model_copy(update=sender)),
            )
            for sent in self.envelopes
        ]

    def read(self, kinds: Iterable[type[Record]]) -> Record:
        """Return the record; :class:`Malformed` unless it is of one of these kinds."""
        kind = self.header.record.get("kind")
        for known in kinds:
            if known.kind == kind:
                return known.parse(self.header.record, self.arrays)
        raise Malformed("A record of that kind has no place here.")


def digest_of(
    record: codec.Header, arrays: codec.Arrays, without: Collection[str] = ()
) -> str:
    """Return the SHA-256 (hex) of a record's bytes, some fields left out."""
    values = {k: v for k, v in record["values"].items() if k not in without}
    kept = {name: array for name, array in arrays.items() if name not in without}
    return codec.digest({**record, "values": values}, kept)


def digest_each(
    records: Mapping[str, Record], without: Collection[str]
) -> dict[str, str]:
    """Return the digests of what slots are sent; of one record for several only once."""
    once = {id(record): record for record in records.values()}
    found = {
        key: digest_of(record.header(), record.arrays, without)
        for key, record in once.items()
    }
    return {slot: found[id(record)] for slot, record in records.items()}


def write(
    address: Address,
    record: Record,
    *,
    expects: Expectation | None = None,
    envelopes: Sequence[Envelope] = (),
    history: Sequence[str] = (),
    signatures: ByteArray = UNSIGNED,
) -> bytes:
    """Return a packet's bytes."""
    header = Header(
        address=address,
        record=record.header(),
        expects=expects,
        envelopes=[envelope.label for envelope in envelopes],
    )
    return encode(
        Packet(
            header=header,
            arrays=record.arrays,
            envelopes=envelopes,
            history=history,
            signatures=signatures,
        )
    )


def write_encoded(
    address: Address,
    record: ByteArray,
    *,
    history: Sequence[str],
    signatures: ByteArray,
) -> bytes:
    """Return the bytes of a packet whose record is encoded already."""
    header, arrays = codec.decode(record.data)
    return encode(
        Packet(
            header=Header(address=address, record=header),
            arrays=arrays,
            history=history,
            signatures=signatures,
        )
    )


def read(buffer: Buffer) -> Packet:
    """Return the packet in a buffer; arrays are views of it.

    Raises Malformed, InvalidArray if the bytes are not a packet.
    """
    raw, arrays = codec.decode(buffer)
    try:
        header = Header.model_validate(raw)
    except ValidationError as error:
        finding = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in finding["loc"])
        raise Malformed(f"Header, {place}: {finding['msg']}.") from None
    history, signatures = _pop_transcript(arrays)
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
    return Packet(
        header=header,
        arrays=arrays,
        envelopes=envelopes,
        history=history,
        signatures=signatures,
    )


def _pop_transcript(arrays: dict[str, NDArray[Any]]) -> tuple[list[str], ByteArray]:
    """Take the lines of the transcript and the signatures out of a packet's arrays."""
    lines = arrays.pop(_HISTORY, _NO_LINES)
    signatures = arrays.pop(_SIGNATURES, UNSIGNED)
    if lines.dtype != np.uint8 or signatures.dtype != np.uint8:
        raise Malformed("Lines and signatures are bytes.")
    if signatures.ndim != 2 or signatures.shape[1] != SIGNATURE_BYTES:
        raise Malformed(f"A signature has {SIGNATURE_BYTES} bytes.")
    try:
        text = lines.tobytes().decode()
    except UnicodeDecodeError:
        raise Malformed("A line of the transcript is not UTF-8.") from None
    return text.split("\n") if text else [], signatures


def encode(packet: Packet) -> bytes:
    """Return the bytes of a packet."""
    beside: dict[str, NDArray[Any]] = {
        f"{_ENVELOPE}{index}": np.frombuffer(envelope.sealed, np.uint8)
        for index, envelope in enumerate(packet.envelopes)
    }
    if packet.history:
        text = "\n".join(packet.history).encode()
        beside[_HISTORY] = np.frombuffer(text, np.uint8)
    if len(packet.signatures):
        beside[_SIGNATURES] = packet.signatures
    header = packet.header.model_dump(mode="json")
    return codec.encode(header, {**packet.arrays, **beside})
