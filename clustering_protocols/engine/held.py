"""Results, kept back until everybody has signed what everybody was told.

A session of several runs keeps those of each, until one of them is chosen.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import numpy as np

from clustering_protocols import codec
from clustering_protocols.arrays import ByteArray
from clustering_protocols.contract import Run
from clustering_protocols.figures import Figures

NOTHING: Final[ByteArray] = np.empty(0, np.uint8)
_KEPT: Final = "kept"


def keep(held: ByteArray, runs: Sequence[Run]) -> ByteArray:
    """Return what is held with more runs; a record for several slots only once."""
    kept, arrays = _opened(held)
    for run in runs:
        records = dict(run.results)
        if run.summary is not None:
            records[""] = run.summary  # no slot has an empty name
        once = {id(record): record for record in records.values()}
        names = {key: f"record.{len(kept)}.{i}" for i, key in enumerate(once)}
        for key, record in once.items():
            arrays[names[key]] = np.frombuffer(record.encode(), np.uint8)
        kept.append(
            {
                "records": {slot: names[id(each)] for slot, each in records.items()},
                "figures": None if run.figures is None else run.figures.values,
            }
        )
    return _closed(kept, arrays)


def decide(held: ByteArray, run: int) -> ByteArray:
    """Return what is held once a run is chosen: its records, and the figures of all."""
    kept, arrays = _opened(held)
    names = set(kept[run]["records"].values())
    told = [
        {**each, "records": each["records"] if n == run else {}, "chosen": n == run}
        for n, each in enumerate(kept)
    ]
    return _closed(told, {name: arrays[name] for name in sorted(names)})


def chosen(held: ByteArray) -> int | None:
    """Return the number of the chosen run; None before one is chosen."""
    kept, _ = _opened(held)
    return next((n for n, each in enumerate(kept) if each.get("chosen")), None)


def figures(held: ByteArray) -> list[Figures]:
    """Return the figures of all runs; none where one of them has none."""
    kept, _ = _opened(held)
    found = [run["figures"] for run in kept]
    return [] if None in found else [Figures(**each) for each in found]


def results(held: ByteArray) -> dict[str, ByteArray]:
    """Return the bytes of each slot's result, once a run is chosen."""
    return {slot: record for slot, record in _records(held).items() if slot}


def digests(held: ByteArray) -> dict[str, str]:
    """Return the SHA-256 (hex) of each slot's result, once a run is chosen."""
    return {slot: sha256(each.data).hexdigest() for slot, each in results(held).items()}


def summary(held: ByteArray) -> ByteArray | None:
    """Return the bytes of what the coordinator may read, if there is anything."""
    return _records(held).get("")


def _records(held: ByteArray) -> dict[str, ByteArray]:
    kept, arrays = _opened(held)
    run = chosen(held) or 0
    named: Mapping[str, str] = kept[run]["records"] if kept else {}
    return {slot: arrays[name] for slot, name in named.items()}


def _opened(held: ByteArray) -> tuple[list[dict[str, Any]], dict[str, ByteArray]]:
    if not held.size:
        return [], {}
    header, arrays = codec.decode(held.data)
    found = dict(arrays)
    if "records" in header:  # as 0.2.0 held them, where a session goes on after it
        return [{"records": header["records"], "figures": None}], found
    return json.loads(found.pop(_KEPT).tobytes()), found


def _closed(kept: list[dict[str, Any]], arrays: dict[str, ByteArray]) -> ByteArray:
    # not in the header, which has no room for the slots of many runs
    text = np.frombuffer(json.dumps(kept).encode(), np.uint8)
    return np.frombuffer(codec.encode({}, {**arrays, _KEPT: text}), np.uint8)
