"""The JSON form in which vectors have a header with arrays; see spec/conformance.md.

A float64 that is written with 17 digits is read back exactly.
"""

from __future__ import annotations

import base64
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from clustering_protocols.records import codec

_AS_TEXT: Final = frozenset({"U8", "U64"})


def of_bytes(buffer: Buffer) -> dict[str, Any]:
    """Return the JSON form of encoded arrays; raise :class:`Malformed` for other bytes."""
    header, arrays = codec.decode(buffer)
    return {"header": header, "arrays": {name: _dump(a) for name, a in arrays.items()}}


def to_bytes(form: dict[str, Any]) -> bytes:
    """Return the encoded arrays of a JSON form."""
    arrays = {name: _load(**entry) for name, entry in form["arrays"].items()}
    return codec.encode(form["header"], arrays)


def _dump(array: NDArray[Any]) -> dict[str, Any]:
    code = codec.CODES[array.dtype.newbyteorder("<")]
    data = (
        base64.b64encode(array.tobytes()).decode()
        if code in _AS_TEXT
        else array.reshape(-1).tolist()
    )
    return {"dtype": code, "shape": list(array.shape), "data": data}


def _load(dtype: str, shape: list[int], data: Any) -> NDArray[Any]:
    if dtype in _AS_TEXT:
        flat = np.frombuffer(base64.b64decode(data), codec.DTYPES[dtype])
    else:
        flat = np.array(data, codec.DTYPES[dtype])
    return flat.reshape(shape)
