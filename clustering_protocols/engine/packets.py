"""Packets, each of which carries a record with its address and envelopes.

The analyst sends a task to a party, and the party sends a contribution back; the last
packet contains a result. The header names session, agreement, slot, stage, round and
attempt, so that a packet replayed elsewhere is refused. A task also names the kind of
contribution that it expects, and includes the lines of the transcript since the
receiver's last answer.

The record travels as one array of opaque bytes, the *content*. Fields in which the
tasks of one group differ, the *own fields*, are in a second array. Digests cover the
content's bytes as they were received; the content is never serialised again for a
digest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from typing_extensions import Buffer

from clustering_protocols.common.errors import Malformed
from clustering_protocols.records import codec
from clustering_protocols.records.arrays import ByteArray
from clustering_protocols.records.codec import JoinedBytes
from clustering_protocols.records.record import Record
from clustering_protocols.records.rounds import RoundRef

T = TypeVar("T")
R = TypeVar("R")

CONTENT: Final = "content"
_OWN = "own"
_ENVELOPE = "envelope."
_HISTORY = "transcript.lines"
_SIGNATURES = "transcript.signatures"
SIGNATURE_BYTES: Final = 64


class _HeaderPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class EnvelopeLabel(RoundRef):
    """The label of an envelope: a slot, a kind, and the round in which it was sealed.

    peer: the receiver in a contribution, and the sender in a task.
    """

    peer: str
    kind: str


class Expectation(_HeaderPart):
    """The kind of contribution that answers a task, and the sizes of its arrays."""

    kind: str
    dims: dict[str, int] = {}


class Address(RoundRef):
    """The session, agreement, slot and round to which a packet belongs."""

    session: str
    agreement: str
    slot: str


class Header(_HeaderPart):
    """Everything in a packet except its arrays.

    record: kind, version and values of the record, which are sent in the content.
    """

    address: Address
    record: dict[str, Any] = Field(exclude=True)
    expects: Expectation | None = None
    envelopes: list[EnvelopeLabel] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """An encrypted record and its label."""

    label: EnvelopeLabel
    sealed: bytes = field(repr=False)


Mail: TypeAlias = Sequence[tuple[str, Envelope]]
"""Pairs of a receiver and an envelope whose label names the sender."""

_NO_BYTES: Final[ByteArray] = np.empty(0, np.uint8)
UNSIGNED: Final[ByteArray] = np.empty((0, SIGNATURE_BYTES), np.uint8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """A packet whose record has not been interpreted yet.

    arrays: mapping of str to ndarray; the arrays of the record.
    content: uint8 (bytes,); the record without its own fields, as received.
    own: the names of the own fields.
    history: lines of the transcript, in a packet to a party.
    signatures: uint8 (s, 64); one for each slot, with zeros for slots that have not
        signed. s is 0 if the packet carries no signatures.
    """

    header: Header
    arrays: codec.Arrays = field(repr=False)
    content: ByteArray = field(default_factory=lambda: _NO_BYTES, repr=False)
    own: tuple[str, ...] = ()
    envelopes: Sequence[Envelope] = ()
    history: Sequence[str] = field(default=(), repr=False)
    signatures: ByteArray = field(default_factory=lambda: UNSIGNED, repr=False)

    @property
    def address(self) -> Address:
        """Return the packet's address."""
        return self.header.address

    @property
    def content_digest(self) -> str:
        """Return the SHA-256 (hex) of the content bytes as received."""
        return sha256(self.content.data).hexdigest()

    def to_mail(self) -> Mail:
        """Return a contribution's envelopes, each with its sender on the label."""
        sender = {"peer": self.address.slot}
        return [
            (e.label.peer, replace(e, label=e.label.model_copy(update=sender)))
            for e in self.envelopes
        ]

    def read(self, kinds: Iterable[type[Record]]) -> Record:
        """Return the record; raise Malformed unless it has one of these kinds."""
        for kind in kinds:
            if kind.kind == self.header.record.get("kind"):
                return kind.parse(self.header.record, self.arrays)
        raise Malformed("A record of that kind has no place here.")


def encode_content(
    record: codec.Header, arrays: codec.Arrays, own: Collection[str]
) -> JoinedBytes:
    """Return the content of a packet: a record's bytes without its own fields."""
    if own:
        values = {k: v for k, v in record["values"].items() if k not in own}
        record = {**record, "values": values}
    shared = {name: array for name, array in arrays.items() if name not in own}
    return JoinedBytes(tuple(codec.pieces(record, shared)))


def digest_content(
    record: codec.Header, arrays: codec.Arrays, own: Collection[str] = ()
) -> str:
    """Return the SHA-256 (hex) of a packet's content."""
    return encode_content(record, arrays, own).digest()


def map_distinct(function: Callable[[T], R], items: Mapping[str, T]) -> dict[str, R]:
    """Apply a function to each value, calling it once for each distinct object."""
    distinct = {id(item): item for item in items.values()}
    results = {key: function(item) for key, item in distinct.items()}
    return {name: results[id(item)] for name, item in items.items()}


def write_packet(
    address: Address,
    record: Record,
    *,
    own: Collection[str] = (),
    expects: Expectation | None = None,
    envelopes: Sequence[Envelope] = (),
    history: Sequence[str] = (),
    signatures: ByteArray = UNSIGNED,
) -> bytes:
    """Return the bytes of a new packet.

    own: names of fields in which the tasks of one group differ.
    """
    header = Header(
        address=address,
        record=record.header(),
        expects=expects,
        envelopes=[envelope.label for envelope in envelopes],
    )
    return encode_packet(
        Packet(
            header=header,
            arrays=record.arrays,
            own=tuple(own),
            envelopes=envelopes,
            history=history,
            signatures=signatures,
        )
    )


def write_encoded_packet(
    address: Address,
    record: ByteArray,
    *,
    history: Sequence[str],
    signatures: ByteArray,
) -> bytes:
    """Return the bytes of a packet whose record is already encoded."""
    arrays = {CONTENT: record, **_transcript_arrays(history, signatures)}
    return codec.encode(
        Header(address=address, record={}).model_dump(mode="json"), arrays
    )


def parse(buffer: Buffer) -> Packet:
    """Parse the packet in a buffer; its arrays are views of the buffer.

    Raises Malformed, InvalidArray if the bytes are not a valid packet.
    """
    values, parts = codec.decode(buffer)
    if "record" in values:
        raise Malformed("Header, record: only the content holds the record.")
    content, own = _pop_bytes(parts, CONTENT), _pop_bytes(parts, _OWN)
    record, arrays = codec.decode(content.data)
    own_names = _add_own_fields(record, arrays, own) if own.size else ()
    try:
        header = Header.model_validate({**values, "record": record})
    except ValidationError as error:
        finding = error.errors(include_input=False, include_url=False)[0]
        location = ".".join(str(part) for part in finding["loc"])
        raise Malformed(f"Header, {location}: {finding['msg']}.") from None
    history, signatures = _pop_transcript(parts)
    sealed = [
        parts.pop(f"{_ENVELOPE}{index}", None) for index in range(len(header.envelopes))
    ]
    if parts or any(item is None or item.dtype != np.uint8 for item in sealed):
        raise Malformed("The envelopes do not match their labels.")
    return Packet(
        header=header,
        arrays=arrays,
        content=content,
        own=own_names,
        envelopes=[
            Envelope(label=label, sealed=item.tobytes())
            for label, item in zip(header.envelopes, sealed, strict=True)
            if item is not None
        ],
        history=history,
        signatures=signatures,
    )


def _pop_bytes(arrays: dict[str, NDArray[Any]], name: str) -> ByteArray:
    array = arrays.pop(name, _NO_BYTES)
    if array.dtype != np.uint8 or array.ndim != 1:
        raise Malformed(f"The array {name!r} must hold bytes.")
    return array


def _add_own_fields(
    record: codec.Header, arrays: dict[str, NDArray[Any]], own: ByteArray
) -> tuple[str, ...]:
    """Add the own fields to a decoded record, and return their names."""
    own_values, own_arrays = codec.decode(own.tobytes())  # a copy is aligned
    values = record.get("values")
    if not isinstance(values, dict):
        raise Malformed("A record's values must be an object.")
    names = (*own_values, *own_arrays)
    if len({*names, *values, *arrays}) < len(names) + len(values) + len(arrays):
        raise Malformed("A field appears twice in one packet.")
    values.update(own_values)
    arrays.update(own_arrays)
    return tuple(sorted(names))


def _pop_transcript(arrays: dict[str, NDArray[Any]]) -> tuple[list[str], ByteArray]:
    lines = arrays.pop(_HISTORY, _NO_BYTES)
    signatures = arrays.pop(_SIGNATURES, UNSIGNED)
    if lines.dtype != np.uint8 or signatures.dtype != np.uint8:
        raise Malformed("Lines and signatures must be bytes.")
    if signatures.ndim != 2 or signatures.shape[1] != SIGNATURE_BYTES:
        raise Malformed(f"A signature has {SIGNATURE_BYTES} bytes.")
    try:
        text = lines.tobytes().decode()
    except UnicodeDecodeError:
        raise Malformed("A line of the transcript is not UTF-8.") from None
    return text.split("\n") if text else [], signatures


def encode_packet(packet: Packet) -> bytes:
    """Return the bytes of a packet; this serialises its record again."""
    record, own = packet.header.record, packet.own
    parts: dict[str, NDArray[Any] | JoinedBytes] = {
        f"{_ENVELOPE}{index}": np.frombuffer(envelope.sealed, np.uint8)
        for index, envelope in enumerate(packet.envelopes)
    }
    parts[CONTENT] = encode_content(record, packet.arrays, own)
    if own:
        values = {
            name: record["values"][name] for name in own if name in record["values"]
        }
        arrays = {name: packet.arrays[name] for name in own if name in packet.arrays}
        if values or arrays:
            parts[_OWN] = JoinedBytes(tuple(codec.pieces(values, arrays)))
    parts |= _transcript_arrays(packet.history, packet.signatures)
    return codec.encode(packet.header.model_dump(mode="json"), parts)


def _transcript_arrays(
    history: Sequence[str], signatures: ByteArray
) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    if history:
        arrays[_HISTORY] = np.frombuffer("\n".join(history).encode(), np.uint8)
    if len(signatures):
        arrays[_SIGNATURES] = signatures
    return arrays
