"""Layer: the codec, and packets with real values."""

from __future__ import annotations

from typing import Annotated, Any, Final

import numpy as np

from benchmarks.vectors.form import Layer, VectorCase
from benchmarks.vectors.product import as_base64, build_case
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
        cases=[*_records(), *_refused_records(), *_packets()],
    )


def _array(dtype: str, shape: list[int], data: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data": data}


def _contents() -> dict[str, dict[str, Any]]:
    """Return JSON forms of records by what they are about."""
    words = np.array([2**64 - 1, 5, 2**59], "<u8").tobytes()
    numbers: dict[str, Any] = {"one": 1.0, "small": 1e-7, "minus": -0.0, "large": 1e22}
    return {
        "no array": {
            "header": {"kind": "greet", "version": 1, "values": {}},
            "arrays": {},
        },
        "values: text beyond ASCII, numbers, nothing": {
            "header": {
                "kind": "x",
                "version": 1,
                "values": {"name": "Größe \u2028", "numbers": numbers, "none": None},
            },
            "arrays": {},
        },
        "arrays: by item size, then by name": {
            "header": {"kind": "x", "version": 1, "values": {}},
            "arrays": {
                "z": _array("F64", [7], _FLOATS),
                "words": _array("U64", [3], as_base64(words)),
                "bytes": _array("U8", [2], as_base64(b"\x00\xff")),
                "counts": _array("I64", [2, 1], [-1, 2**62]),
                "a.1": _array("F64", [0, 3], []),
            },
        },
    }


def _records() -> list[VectorCase]:
    found = []
    for name, form in _contents().items():
        written = build_case(name, "3", "write-record", form)
        found.append(build_case(name, "3", "read-record", written.output or {}))
        if form["header"]["values"] == {}:
            found.append(written)
    return found


def _refused_records() -> list[VectorCase]:
    good = codec.encode({"kind": "x"}, {"x": np.arange(2.0), "y": np.arange(2.0)})
    length = int.from_bytes(good[:8], "little")
    head, data = good[8 : 8 + length], good[8 + length :]

    def changed(old: bytes, new: bytes) -> bytes:
        """Return the bytes with the header changed, and its length with it."""
        text = head.replace(old, new)
        return len(text).to_bytes(8, "little") + text + data

    arrays = {
        "a dtype outside the list": changed(b'"F64"', b'"F16"'),
        "a name with a capital": changed(b'"y":', b'"Y":'),
    }
    bad = {
        "shorter than a length": good[:7],
        "ends within its header": good[:20],
        "bytes behind the last array": good + b"\x00",
        "an array shorter than its shape": good[:-1],
        "a gap between arrays": changed(b"[16,32]", b"[24,40]") + bytes(8),
        "two arrays over each other": changed(b"[16,32]", b"[0,16]"),
        "a name that stands twice": changed(b'"y":', b'"x":'),
        "a header with a number that is not finite": changed(
            rb"\"kind\":\"x\"", rb"\"kind\":1e999"
        ),
        "metadata of somebody else": changed(b'"coterie"', b'"another"'),
        "a header said to be over 64 KiB": (2**16 + 8).to_bytes(8, "little") + head,
    }
    return [
        build_case(
            *(name, "3", "read-record", {"bytes": as_base64(each)}), fails=problem
        )
        for changes, problem in ((bad, "malformed"), (arrays, "invalid-array"))
        for name, each in changes.items()
    ]


def _packets() -> list[VectorCase]:
    layout = Layout.lattice(2)
    rows = {slot: MatrixSource(np.zeros((12, 3))) for slot in layout.names}
    session = Session(Dummy(n_clusters=3), layout, rows, seed=SEED)
    session.to_the_end()
    found = []
    for sent in session.sent:
        packet = packets.read(sent.payload)
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
        written = packets.write(_address(), task, own=own, history=["{}", "{}"])
        found.append(
            build_case(name, "3", "read-packet", {"bytes": as_base64(written)})
        )
    return found


def _address() -> packets.Address:
    return packets.Address(
        stage="x", round=2, attempt=1, session="s", agreement="ab" * 32, slot="south"
    )


def _refused_packets() -> list[VectorCase]:
    good = packets.write(_address(), _Update(number=1, members=[], centres=np.eye(1)))
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
