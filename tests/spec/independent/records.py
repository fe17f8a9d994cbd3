"""Section 3: records and packets."""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from math import isfinite, prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .derivations import Refusal

Array = NDArray[Any]
_DTYPES: Final = {
    code: np.dtype(name)
    for code, name in {
        "F64": "<f8",
        "F32": "<f4",
        "I64": "<i8",
        "I32": "<i4",
        "U64": "<u8",
        "U8": "u1",
    }.items()
}
_CODES: Final = {dtype: code for code, dtype in _DTYPES.items()}
_NAME: Final = re.compile(r"[a-z][a-z0-9_.-]{0,62}")
_MOST: Final = 64 * 1024
_MALFORMED: Final = "malformed"


def canonical(value: Any) -> str:
    """Section 1: JSON in its canonical form."""
    return jcs(_in_nfc(value))


def _in_nfc(value: Any) -> Any:
    """Section 1: texts and names in NFC."""
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, Mapping):
        return {_in_nfc(name): _in_nfc(item) for name, item in value.items()}
    return [_in_nfc(item) for item in value] if isinstance(value, list) else value


def jcs(value: Any) -> str:
    """Section 1: JSON as RFC 8785 writes it."""
    if isinstance(value, Mapping):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        fields = (f"{jcs(name)}:{jcs(value[name])}" for name in names)
        return f"{{{','.join(fields)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(jcs, value))}]"
    if isinstance(value, float):
        return _write_number(value)
    return json.dumps(value, ensure_ascii=False)


def _write_number(value: float) -> str:
    """Section 1: the shortest digits, placed as ECMAScript places them."""
    sign, found, exponent = Decimal(repr(value)).normalize().as_tuple()
    if not isinstance(exponent, int):
        raise Refusal(_MALFORMED)
    if value == 0:
        return "0"
    digits = "".join(map(str, found))
    point = len(digits) + exponent
    minus = "-" * sign
    if len(digits) <= point <= 21:
        return f"{minus}{digits.ljust(point, '0')}"
    if 0 < point <= 21:
        return f"{minus}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{minus}0.{'0' * -point}{digits}"
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{minus}{digits[0]}{rest}e{point - 1:+d}"


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Section 3: no name stands twice."""
    if len(dict(pairs)) < len(pairs):
        raise Refusal(_MALFORMED)
    return dict(pairs)


def _finite(digits: str) -> float:
    """Section 3: numbers are finite."""
    if not isfinite(float(digits)):
        raise Refusal(_MALFORMED)
    return float(digits)


def read_json(text: bytes) -> dict[str, Any]:
    """Section 3: a JSON object."""
    try:
        found = json.loads(
            text.decode(),
            object_pairs_hook=_pairs,
            parse_constant=_finite,
            parse_float=_finite,
        )
    except ValueError:
        raise Refusal(_MALFORMED) from None
    if not isinstance(found, dict):
        raise Refusal(_MALFORMED)
    return found


def write(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """Section 3: header and arrays as bytes."""
    entries: dict[str, Any] = {"__metadata__": {"coterie": jcs(header)}}
    ordered = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    data, end = [], 0
    for name in ordered:
        little = arrays[name].astype(arrays[name].dtype.newbyteorder("<"))
        data.append(little.tobytes())
        begin, end = end, end + len(data[-1])
        entries[name] = {
            "dtype": _CODES[little.dtype],
            "shape": list(little.shape),
            "data_offsets": [begin, end],
        }
    text = jcs(entries).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(data)


def read(content: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """Section 3: header and arrays in bytes."""
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > _MOST or len(content) < 8 + length:
        raise Refusal(_MALFORMED)
    entries, data = read_json(content[8 : 8 + length]), content[8 + length :]
    metadata = entries.pop("__metadata__", None)
    if not isinstance(metadata, dict) or list(metadata) != ["coterie"]:
        raise Refusal(_MALFORMED)
    header = read_json(str(metadata["coterie"]).encode())
    arrays, spans = {}, []
    for name, entry in entries.items():
        dtype, shape, (begin, end) = _read_entry(name, entry)
        if prod(shape) * dtype.itemsize != end - begin:
            raise Refusal(_MALFORMED)
        spans.append((begin, end))
        arrays[name] = (dtype, shape, begin, end)
    place = 0
    for begin, end in [*sorted(spans), (len(data), len(data))]:
        if begin != place:
            raise Refusal(_MALFORMED)
        place = end
    return header, {
        name: np.frombuffer(data[begin:end], dtype).reshape(shape)
        for name, (dtype, shape, begin, end) in arrays.items()
    }


def _read_entry(name: str, entry: Any) -> tuple[np.dtype[Any], list[int], list[int]]:
    """Section 3: what a header says of an array."""
    if not _NAME.fullmatch(name):
        raise Refusal("invalid-array")
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise Refusal(_MALFORMED)
    if entry["dtype"] not in _DTYPES:
        raise Refusal("invalid-array")
    shape, offsets = entry["shape"], entry["data_offsets"]
    for sizes in (shape, offsets):
        if not isinstance(sizes, list) or any(
            type(s) is not int or s < 0 for s in sizes
        ):
            raise Refusal(_MALFORMED)
    if len(offsets) != 2:
        raise Refusal(_MALFORMED)
    return _DTYPES[entry["dtype"]], shape, offsets


def to_form(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> dict[str, Any]:
    """Section 3: the JSON form."""
    return {
        "header": header,
        "arrays": {name: _to_entry(array) for name, array in arrays.items()},
    }


def _to_entry(array: Array) -> dict[str, Any]:
    """Section 3: an array in the JSON form."""
    code = _CODES[array.dtype.newbyteorder("<")]
    text = code in {"U8", "U64"}
    data = (
        base64.b64encode(array.tobytes()).decode() if text else array.ravel().tolist()
    )
    return {"dtype": code, "shape": list(array.shape), "data": data}


def of_form(form: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Array]]:
    """Section 3: header and arrays of the JSON form."""
    arrays = {}
    for name, entry in form["arrays"].items():
        dtype, data = _DTYPES[entry["dtype"]], entry["data"]
        flat = (
            np.frombuffer(base64.b64decode(data), dtype)
            if isinstance(data, str)
            else np.array(data, dtype)
        )
        arrays[name] = flat.reshape(entry["shape"])
    return form["header"], arrays


@dataclass
class Packet:
    """Section 3: a record under way."""

    header: dict[str, Any]
    record: dict[str, Any]
    arrays: dict[str, Array]
    own: list[str] = field(default_factory=list)
    sealed: list[bytes] = field(default_factory=list)
    content_digest: str = ""
    lines: list[str] = field(default_factory=list)
    signatures: list[bytes] = field(default_factory=list)

    @property
    def address(self) -> dict[str, Any]:
        """Section 3: where it belongs."""
        return self.header["address"]

    @property
    def kind(self) -> str:
        """Section 3: the kind of its record."""
        return self.record["kind"]

    @property
    def values(self) -> dict[str, Any]:
        """Section 3: the values of its record."""
        return self.record["values"]


_WHEN: Final = {"stage", "round", "attempt"}


def read_packet(content: bytes) -> Packet:
    """Section 3: a packet."""
    header, beside = read(content)
    body, own = _take(beside, "content"), _take(beside, "own")
    record, arrays = read(body)
    if set(record) != {"kind", "version", "values"}:
        raise Refusal(_MALFORMED)
    names: list[str] = []
    if own:
        values, more = read(own)
        names = sorted([*values, *more])
        if len({*names, *record["values"], *arrays}) < (
            len(names) + len(record["values"]) + len(arrays)
        ):
            raise Refusal(_MALFORMED)
        record["values"].update(values)
        arrays.update(more)
    _check_header(header)
    try:
        text = _take(beside, "transcript.lines").decode()
    except UnicodeDecodeError:
        raise Refusal(_MALFORMED) from None
    signatures = beside.pop("transcript.signatures", np.zeros((0, 64), np.uint8))
    if signatures.ndim != 2 or signatures.shape[1] != 64:
        raise Refusal(_MALFORMED)
    expected = [f"envelope.{n}" for n in range(len(header["envelopes"]))]
    if set(expected) != set(beside):
        raise Refusal(_MALFORMED)
    return Packet(
        header=header,
        record=record,
        arrays=arrays,
        own=names,
        sealed=[beside[name].tobytes() for name in expected],
        content_digest=sha256(body).hexdigest(),
        lines=text.split("\n") if text else [],
        signatures=[row.tobytes() for row in signatures],
    )


def _take(arrays: dict[str, Array], name: str) -> bytes:
    """Section 3: an array of bytes."""
    found = arrays.pop(name, np.zeros(0, np.uint8))
    if found.dtype != np.uint8 or found.ndim != 1:
        raise Refusal(_MALFORMED)
    return found.tobytes()


def _check_header(header: dict[str, Any]) -> None:
    """Section 3: the header of a packet."""
    header.setdefault("envelopes", [])
    header.setdefault("expects", None)
    labels = header["envelopes"]
    good = (
        set(header) == {"address", "envelopes", "expects"}
        and set(header["address"]) == {"session", "agreement", "slot", *_WHEN}
        and all(set(label) == {"peer", "kind", *_WHEN} for label in labels)
    )
    if not good:
        raise Refusal(_MALFORMED)


def write_packet(
    address: Mapping[str, Any],
    record: bytes,
    envelopes: list[tuple[str, str, bytes]],
) -> bytes:
    """Section 3: a contribution. Envelopes: receiver, kind, sealed bytes."""
    when = {name: address[name] for name in sorted(_WHEN)}
    labels = [{"peer": peer, "kind": kind, **when} for peer, kind, _ in envelopes]
    header = {"address": dict(address), "envelopes": labels, "expects": None}
    arrays = {"content": np.frombuffer(record, np.uint8)}
    for number, (_, _, sealed) in enumerate(envelopes):
        arrays[f"envelope.{number}"] = np.frombuffer(sealed, np.uint8)
    return write(header, arrays)


def write_record(
    kind: str, values: Mapping[str, Any], arrays: Mapping[str, Array], version: int = 1
) -> bytes:
    """Section 3: the bytes of a record."""
    return write({"kind": kind, "version": version, "values": dict(values)}, arrays)
