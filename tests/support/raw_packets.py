"""Packets with their content laid open: to write packets that no side would send."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from clustering_protocols.records import codec

_BESIDE = ("envelope.", "transcript.", "own")


def decode(packet: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return header and arrays, those of the content among them."""
    header, arrays = codec.decode(packet)
    record, inside = codec.decode(arrays.pop("content").data)
    return {**header, "record": record}, {**arrays, **inside}


def encode(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> bytes:
    """Return the bytes of what :func:`decode` laid open."""
    inside = {n: array for n, array in arrays.items() if not n.startswith(_BESIDE)}
    beside = {n: array for n, array in arrays.items() if n.startswith(_BESIDE)}
    content = codec.encode(header["record"], inside)
    rest = {name: value for name, value in header.items() if name != "record"}
    return codec.encode(rest, {**beside, "content": np.frombuffer(content, np.uint8)})
