"""Results, kept back until everybody has signed what everybody was told."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Final

import numpy as np

from clustering_protocols import codec
from clustering_protocols.arrays import ByteArray
from clustering_protocols.contract import Finish

NOTHING: Final[ByteArray] = np.empty(0, np.uint8)


def keep(finish: Finish) -> ByteArray:
    """Return results and summary as bytes, a record for several slots only once."""
    records = dict(finish.results)
    if finish.summary is not None:
        records[""] = finish.summary  # no slot has an empty name
    once = {id(record): record for record in records.values()}
    names = {key: f"record.{index}" for index, key in enumerate(once)}
    header = {slot: names[id(record)] for slot, record in records.items()}
    arrays = {
        names[key]: np.frombuffer(record.encode(), np.uint8)
        for key, record in once.items()
    }
    return np.frombuffer(codec.encode({"records": header}, arrays), np.uint8)


def results(held: ByteArray) -> dict[str, ByteArray]:
    """Return the bytes of each slot's result."""
    return {slot: record for slot, record in _records(held).items() if slot}


def digests(held: ByteArray) -> dict[str, str]:
    """Return the SHA-256 (hex) of each slot's result."""
    return {slot: sha256(each.data).hexdigest() for slot, each in results(held).items()}


def summary(held: ByteArray) -> ByteArray | None:
    """Return the bytes of what the coordinator may read, if there is anything."""
    return _records(held).get("")


def _records(held: ByteArray) -> dict[str, ByteArray]:
    header, arrays = codec.decode(held.data)
    named: Mapping[str, str] = header["records"]
    return {slot: arrays[name] for slot, name in named.items()}
