"""Conversion of named arrays and a JSON header to bytes and back.

The bytes form a safetensors file: a length, a JSON header, and raw little-endian data.
The only metadata entry, ``coterie``, contains our own header as JSON text. Equal
content gives equal bytes, because the JSON is canonical (RFC 8785) and arrays are
sorted by item size, then by name.

We do not use the loaders of the safetensors library, because they copy arrays, and
because our reader must refuse everything that the format excludes: gaps, overlaps,
duplicate keys, surplus bytes, a header over 64 KiB. The reader never copies an array;
arrays are views of the buffer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from hashlib import sha256
from itertools import accumulate, pairwise
from math import isfinite, prod
from typing import Any, ClassVar, Final

import numpy as np
import rfc8785
from numpy.typing import NDArray
from typing_extensions import Buffer

from clustering_protocols.common.errors import InvalidArray, Malformed

MEDIA_TYPE: Final = "application/vnd.coterie.arrays"
MAX_HEADER_BYTES: Final = 64 * 1024
MAX_DEPTH: Final = 64  # of nested objects and lists, since Python's own limit varies
METADATA_KEY: Final = "coterie"
ARRAY_NAME: Final = re.compile(r"[a-z][a-z0-9_.-]{0,62}")

DTYPES: Final[dict[str, np.dtype[Any]]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "U64": np.dtype("<u8"),
    "U8": np.dtype("u1"),
}
CODES: Final = {dtype: code for code, dtype in DTYPES.items()}
_LARGEST: Final = 2**53 - 1  # some JSON readers do not read larger integers exactly

Arrays = Mapping[str, NDArray[Any]]
Header = dict[str, Any]


@dataclass(frozen=True, slots=True)
class JoinedBytes:
    """Several pieces of bytes, which are encoded as one uint8 array."""

    pieces: Sequence[Buffer] = field(repr=False)

    itemsize: ClassVar = 1
    dtype: ClassVar = np.dtype(np.uint8)

    @property
    def nbytes(self) -> int:
        """Return the total number of bytes."""
        return sum(memoryview(piece).nbytes for piece in self.pieces)

    @property
    def shape(self) -> tuple[int]:
        """Return the shape of the joined array."""
        return (self.nbytes,)

    def join(self) -> NDArray[np.uint8]:
        """Return the joined array; a single piece is not copied."""
        whole = self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)
        return np.frombuffer(memoryview(whole), np.uint8)

    def digest(self) -> str:
        """Return the SHA-256 (hex) of all bytes."""
        hashed = sha256()
        for piece in self.pieces:
            hashed.update(piece)
        return hashed.hexdigest()


def encode(
    header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any] | JoinedBytes]
) -> bytes:
    """Return a header and arrays as the bytes of a safetensors file.

    header: JSON values. Raises :class:`ValueError` for NaN, infinities, and whole
        numbers beyond 2^53.
    arrays: mapping of str to ndarray. Names match ``[a-z][a-z0-9_.-]*``; dtypes are
        float64, float32, int64, int32, uint64 or uint8. Arrays may have any memory
        layout, and are written in row-major order.
    """
    return b"".join(pieces(header, arrays))


def pieces(
    header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any] | JoinedBytes]
) -> Iterator[Buffer]:
    """Yield the bytes of :func:`encode` piece by piece, without joining the arrays."""
    table: dict[str, Any] = {METADATA_KEY: canonical_text(dict(header))}
    entries: dict[str, Any] = {"__metadata__": table}
    ordered = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    end = 0
    for name in ordered:
        if not ARRAY_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not an array name")
        array = arrays[name]
        begin, end = end, end + array.nbytes
        entries[name] = {
            "dtype": CODES[array.dtype.newbyteorder("<")],
            "shape": list(array.shape),
            "data_offsets": [begin, end],
        }
    text = _write_plain(entries).encode()
    text += b" " * (-len(text) % 8)  # the data start at a multiple of eight bytes
    if len(text) > MAX_HEADER_BYTES:
        raise ValueError(f"the header takes {len(text)} bytes, over {MAX_HEADER_BYTES}")
    yield len(text).to_bytes(8, "little") + text
    for name in ordered:
        array = arrays[name]
        if isinstance(array, JoinedBytes):
            yield from array.pieces
            continue
        little = np.ascontiguousarray(array).astype(
            array.dtype.newbyteorder("<"), copy=False
        )
        yield little.reshape(-1).view(np.uint8).data


_write_plain: Final = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), sort_keys=True
).encode


def canonical_text(value: Any) -> str:
    """Return a JSON value as canonical text (RFC 8785).

    Values without floats and with ASCII keys are written by the json module, which is
    eight times faster and gives the same text.

    Raises ValueError for NaN, infinities, whole numbers beyond 2^53, and keys that are
    not text.
    """
    return _write_plain(value) if _is_plain(value) else rfc8785.dumps(value).decode()


def _is_plain(value: Any) -> bool:
    if isinstance(value, str | bool) or value is None:
        return True
    if isinstance(value, int):
        return -_LARGEST <= value <= _LARGEST
    if isinstance(value, dict):
        return all(
            isinstance(key, str) and key.isascii() and _is_plain(item)
            for key, item in value.items()
        )
    return isinstance(value, list | tuple) and all(map(_is_plain, value))


def digest(header: Mapping[str, Any], arrays: Arrays) -> str:
    """Return the SHA-256 (hex) of the bytes that :func:`encode` returns."""
    return JoinedBytes(tuple(pieces(header, arrays))).digest()


def decode(buffer: Buffer) -> tuple[Header, dict[str, NDArray[Any]]]:
    """Return the header, and read-only views of the arrays in a buffer.

    Raises Malformed unless the bytes are exactly one well-formed file. Raises
    InvalidArray if an array has a name or dtype that is not accepted.
    """
    entries, data = _split_header(memoryview(buffer).toreadonly().cast("B"))
    metadata = entries.pop("__metadata__", None)
    if not isinstance(metadata, dict) or list(metadata) != [METADATA_KEY]:
        raise Malformed(f"The metadata must have only the entry {METADATA_KEY!r}.")
    header = load_object(metadata[METADATA_KEY])
    spans = {name: _layout(name, entry) for name, entry in entries.items()}
    intervals = sorted((begin, end) for _, _, begin, end in spans.values())
    edges = [(0, 0), *intervals, (len(data), len(data))]
    if any(end != begin for (_, end), (begin, _) in pairwise(edges)):
        raise Malformed("The arrays do not cover the data without gaps or overlaps.")
    arrays = {
        name: np.frombuffer(data[begin:end], dtype).reshape(shape)
        for name, (dtype, shape, begin, end) in spans.items()
    }
    return header, arrays


def _split_header(body: memoryview) -> tuple[Header, memoryview]:
    if len(body) < 8:
        raise Malformed("The body ends before the length of its header.")
    length = int.from_bytes(body[:8], "little")
    if length > MAX_HEADER_BYTES:
        raise Malformed(f"The header is over {MAX_HEADER_BYTES} bytes.")
    if len(body) < 8 + length:
        raise Malformed("The body ends within its header.")
    try:
        text = bytes(body[8 : 8 + length]).decode()
    except UnicodeDecodeError:
        raise Malformed("The header is not UTF-8.") from None
    return load_object(text), body[8 + length :]


def _layout(name: str, entry: Any) -> tuple[np.dtype[Any], tuple[int, ...], int, int]:
    if not ARRAY_NAME.fullmatch(name):
        raise InvalidArray("An array has a name that is not accepted.")
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise Malformed(f"Array {name!r} needs dtype, shape and data_offsets.")
    dtype = DTYPES.get(entry["dtype"]) if isinstance(entry["dtype"], str) else None
    if dtype is None:
        raise InvalidArray(f"Array {name!r} has a dtype outside {', '.join(DTYPES)}.")
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not (
        is_list_of_sizes(shape) and is_list_of_sizes(offsets) and len(offsets) == 2
    ):
        raise Malformed(f"Array {name!r} has a shape or offsets that are not sizes.")
    begin, end = offsets
    if prod(shape) * dtype.itemsize != end - begin:  # Python integers cannot overflow
        raise Malformed(f"Array {name!r} has a shape that does not fit its bytes.")
    if prod(size or 1 for size in shape) * dtype.itemsize >= 2**62:
        raise Malformed(f"Array {name!r} is empty and has a shape that numpy refuses.")
    return dtype, tuple(shape), begin, end


def is_list_of_sizes(value: Any) -> bool:
    """Return whether a JSON value is a list of at most eight sizes."""
    return (
        isinstance(value, list)
        and len(value) <= 8
        and all(type(size) is int and 0 <= size < 2**62 for size in value)
    )


_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_BRACKET: Final = re.compile(r"[\[\]{}]")
_OPENS: Final = {"[": 1, "{": 1, "]": -1, "}": -1}


def load_object(text: Any, max_names: int | None = None) -> Header:
    """Parse a JSON object, accepting only what all JSON readers understand alike.

    Raises Malformed for text that is not a JSON object, for repeated names, NaN,
    infinities, numbers or depths that some readers do not accept, and for objects with
    more than ``max_names`` names.
    """
    if not isinstance(text, str):
        raise Malformed("Expected JSON text.")
    if _depth(text) > MAX_DEPTH:
        raise Malformed(f"Objects and lists are nested more than {MAX_DEPTH} deep.")
    try:
        value = _decoder(max_names).decode(text)
    except json.JSONDecodeError as error:
        raise Malformed(f"This is not JSON: {error.msg}.") from None
    except (ValueError, RecursionError):
        raise Malformed("Numbers are too long or objects too deep.") from None
    if not isinstance(value, dict):
        raise Malformed("Expected a JSON object.")
    return value


@cache  # cached, because every message and every stored record has two JSON texts
def _decoder(max_names: int | None) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=partial(_build_object, max_names),
        parse_int=_parse_whole_number,
        parse_constant=_parse_finite,
        parse_float=_parse_finite,
    )


def _depth(text: str) -> int:
    """Return the nesting depth of a JSON text, or an upper bound within the limit."""
    brackets = text.count("[") + text.count("{")
    if brackets <= MAX_DEPTH:
        return brackets
    opened = (_OPENS[sign] for sign in _BRACKET.findall(_QUOTED.sub("", text)))
    return max(accumulate(opened), default=0)


def _build_object(limit: int | None, pairs: list[tuple[str, Any]]) -> Header:
    if limit is not None and len(pairs) > limit:
        raise json.JSONDecodeError(f"more than {limit} names in one object", "", 0)
    value = dict(pairs)
    if len(value) < len(pairs):
        raise json.JSONDecodeError("a name appears twice in one object", "", 0)
    return value


def _parse_whole_number(digits: str) -> int | float:
    """Return an integer, or a float from 2^53: canonical JSON writes no such integer.

    It writes floats of 2^53 to 10^21 without a point (RFC 8785, section 3.2.2.3).
    """
    number = int(digits)
    return number if abs(number) < 2**53 else _parse_finite(digits)


def _parse_finite(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):  # 1e999 is valid JSON, but too large for a float
        raise json.JSONDecodeError("a number is not finite", "", 0)
    return number
