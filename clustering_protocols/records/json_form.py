"""The JSON form of a header and arrays, for clients that cannot read binary arrays.

    {"header": {…}, "arrays": {"X": {"dtype": "F64", "shape": [2, 3], "data": [0.5, …]}}}

Numbers are listed row by row. Arrays of U8 and U64 (bytes and residues) are their
little-endian bytes in base64. A float64 that is written with 17 digits is read back
exactly, so both forms have the same digest. JSON suits small payloads, because numbers
take about three times the space.
"""

from __future__ import annotations

import base64
import binascii
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from clustering_protocols.common.errors import InvalidArray, Malformed
from clustering_protocols.records import codec

MEDIA_TYPE: Final = "application/json"

_AS_TEXT: Final = frozenset({"U8", "U64"})


def of_bytes(buffer: Buffer) -> dict[str, Any]:
    """Return the JSON form of encoded arrays; raise :class:`Malformed` for other bytes."""
    header, arrays = codec.decode(buffer)
    return {"header": header, "arrays": {name: _dump(a) for name, a in arrays.items()}}


def to_bytes(text: bytes) -> bytes:
    """Return the encoded arrays of a JSON form. Equal content gives equal bytes.

    Raises Malformed unless the text is a JSON object with a header and arrays, without
    repeated names. Raises InvalidArray if the data of an array do not fit its dtype and
    shape.
    """
    try:
        document = codec.load_object(text.decode())
    except UnicodeDecodeError:
        raise Malformed("The body is not UTF-8.") from None
    if set(document) != {"header", "arrays"}:
        raise Malformed("The body needs a header and arrays, and nothing else.")
    header, arrays = document["header"], document["arrays"]
    if not isinstance(header, dict) or not isinstance(arrays, dict):
        raise Malformed("Header and arrays are JSON objects.")
    try:
        return codec.encode(
            header, {name: _load(name, a) for name, a in arrays.items()}
        )
    except ValueError as error:  # an invalid name, or a header that is too large
        raise Malformed(f"The arrays cannot be encoded: {error}.") from None


def _dump(array: NDArray[Any]) -> dict[str, Any]:
    code = codec.CODES[array.dtype.newbyteorder("<")]
    is_text = code in _AS_TEXT
    data = (
        base64.b64encode(array.tobytes()).decode()
        if is_text
        else array.reshape(-1).tolist()
    )
    return {"dtype": code, "shape": list(array.shape), "data": data}


def _load(name: str, entry: Any) -> NDArray[Any]:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data"}:
        raise Malformed("Each array needs dtype, shape and data, and nothing else.")
    code, shape, data = entry["dtype"], entry["shape"], entry["data"]
    dtype = codec.DTYPES.get(code) if isinstance(code, str) else None
    if dtype is None:
        raise InvalidArray(f"An array has a dtype outside {', '.join(codec.DTYPES)}.")
    if not codec.are_sizes(shape):
        raise Malformed("An array has a shape that is no list of sizes.")
    if not codec.ARRAY_NAME.fullmatch(name):
        raise InvalidArray("An array has a name that is not accepted.")
    read = _from_text if code in _AS_TEXT else _from_numbers
    flat = read(name, data, dtype)
    if flat.size != prod(shape):
        raise InvalidArray(f"Array {name!r} has data that do not fit its shape.")
    return flat.reshape(shape)


def _from_text(name: str, data: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    try:
        content = base64.b64decode(
            data if isinstance(data, str) else "!", validate=True
        )
        return np.frombuffer(content, dtype)
    except (binascii.Error, ValueError):
        raise InvalidArray(f"Array {name!r} takes base64 of its bytes.") from None


def _from_numbers(name: str, data: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    types = (int,) if dtype.kind == "i" else (int, float)
    if not isinstance(data, list) or not all(type(item) in types for item in data):
        raise InvalidArray(f"Array {name!r} takes a list of numbers, row by row.")
    try:
        return np.array(data, dtype)
    except OverflowError:
        raise InvalidArray(f"Array {name!r} has a number out of range.") from None
