"""Layer: the codec, and packets with real values."""

from __future__ import annotations

from typing import Annotated, Any, Final

import numpy as np

from benchmarks.vectors.form import Layer, VectorCase
from benchmarks.vectors.product import as_base64, build_case, restate
from clustering_protocols.engine import packets
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.records import codec
from clustering_protocols.records.arrays import FloatArray, Spec
from clustering_protocols.records.record import Record
from clustering_protocols.simulation import Session
from clustering_protocols.terms.terms import Layout

SEED: Final = 7
_FLOATS: Final = [1.0, 1e-7, -0.0, 0.1, 1e22, 5e-324, -1.7976931348623157e308]


def build_layer() -> Layer:
    """Return the layer."""
    return Layer(
        layer="records",
        about="Section 3: bytes of records, and packets of a session of two parties.",
        cases=[
            *restate("records", "read-record", "write-record"),
            *_packets(),
        ],
    )


def _packets() -> list[VectorCase]:
    layout = Layout.lattice(2)
    rows = {slot: MatrixSource(np.zeros((12, 3))) for slot in layout.names}
    session = Session(Dummy(n_clusters=3), layout, rows, seed=SEED)
    session.run_to_end()
    found = []
    for sent in session.sent:
        packet = packets.parse(sent.payload)
        kind = packet.header.record["kind"]
        if packet.address.slot == layout.names[0]:
            name = f"{kind}: {sent.sender} to {sent.receiver}, round {sent.round}"
            given = {"bytes": as_base64(sent.payload)}
            found.append(build_case(name, "3", "read-packet", given))
    return [*found, *_own_fields(), *_refused_packets()]


class _Update(Record):
    """A task with a field that is each party's own."""

    kind = "update"

    number: int
    members: list[str]
    centres: Annotated[FloatArray, Spec("k", "F")]


def _own_fields() -> list[VectorCase]:
    task = _Update(number=1, members=["Größe"], centres=np.array([_FLOATS[:3]]))
    found = []
    for name, own in {
        "a task without own fields": (),
        "the same task, a value of its own": ("members",),
        "the same task, a value and an array of its own": ("centres", "members"),
    }.items():
        written = packets.write_packet(_address(), task, own=own, history=["{}", "{}"])
        found.append(
            build_case(name, "3", "read-packet", {"bytes": as_base64(written)})
        )
    return found


def _address() -> packets.Address:
    return packets.Address(
        stage="x", round=2, attempt=1, session="s", agreement="ab" * 32, slot="south"
    )


def _refused_packets() -> list[VectorCase]:
    good = packets.write_packet(
        _address(), _Update(number=1, members=[], centres=np.eye(1))
    )
    header, arrays = codec.decode(good)
    field = np.frombuffer(codec.encode({"number": 2}, {}), np.uint8)
    unknown: dict[str, Any] = {"peer": "a", "kind": "x", "stage": "x"}
    label = {**unknown, "round": 2, "attempt": 1}
    empty = np.zeros(0, np.uint8)
    bad = {
        "no content": (header, {}),
        "a content that is no record": (header, {"content": empty}),
        "a field that stands twice": (header, {**arrays, "own": field}),
        "an address without a round": (_without(header, "round"), arrays),
        "a label without its envelope": ({**header, "envelopes": [label]}, arrays),
        "an envelope without its label": (header, {**arrays, "envelope.0": empty}),
        "an array that has no place": (header, {**arrays, "x": empty}),
        "a signature of 63 bytes": (
            header,
            {**arrays, "transcript.signatures": np.zeros((1, 63), np.uint8)},
        ),
        "lines that are not UTF-8": (
            header,
            {**arrays, "transcript.lines": np.array([255], np.uint8)},
        ),
    }
    return [
        build_case(
            *(name, "3", "read-packet"),
            {"bytes": as_base64(codec.encode(*each))},
            fails="malformed",
        )
        for name, each in bad.items()
    ]


def _without(header: dict[str, Any], name: str) -> dict[str, Any]:
    address = {k: v for k, v in header["address"].items() if k != name}
    return {**header, "address": address}
