"""Results, kept back until everybody has signed what everybody was told.

A session of several runs keeps those of each, until one of them is chosen. Results are
as long as there are rows: their bytes lie in pieces until the state is written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

import numpy as np

from clustering_protocols import codec
from clustering_protocols.arrays import ByteArray
from clustering_protocols.codec import Joined
from clustering_protocols.contract import Run
from clustering_protocols.figures import Figures

_KEPT: Final = "kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What is held.

    Attributes
    ----------
    runs : sequence of dict
        JSON values: of each run its records' names by slot, its figures, and whether it
        is chosen.
    records : mapping of name to uint8 array, or bytes in pieces
        The encoded records.
    """

    runs: Sequence[Mapping[str, Any]] = ()
    records: Mapping[str, ByteArray | Joined] = field(default_factory=dict, repr=False)

    @classmethod
    def decode(cls, content: ByteArray) -> Held:
        """Return what :meth:`pieces` wrote."""
        if not content.size:
            return NOTHING
        header, arrays = codec.decode(content.data)
        if "records" in header:  # as 0.2.0 held them, where a session goes on after it
            only = {"records": header["records"], "figures": None}
            return cls(runs=[only], records=arrays)
        return cls(runs=json.loads(arrays.pop(_KEPT).tobytes()), records=arrays)

    def pieces(self) -> Joined:
        """Return the bytes to keep; none where nothing is held."""
        if not self.runs:
            return Joined(())
        # not in the header, which has no room for the slots of many runs
        text = np.frombuffer(json.dumps(self.runs).encode(), np.uint8)
        return Joined(tuple(codec.pieces({}, {**self.records, _KEPT: text})))


NOTHING: Final = Held()


def keep(held: Held, runs: Sequence[Run]) -> Held:
    """Return what is held with more runs; a record for several slots only once."""
    kept, encoded = list(held.runs), dict(held.records)
    for run in runs:
        records = dict(run.results)
        if run.summary is not None:
            records[""] = run.summary  # no slot has an empty name
        once = {id(record): record for record in records.values()}
        names = {key: f"record.{len(kept)}.{i}" for i, key in enumerate(once)}
        for key, record in once.items():
            encoded[names[key]] = record.pieces()
        kept.append(
            {
                "records": {slot: names[id(each)] for slot, each in records.items()},
                "figures": None if run.figures is None else run.figures.values,
            }
        )
    return Held(runs=kept, records=encoded)


def decide(held: Held, run: int) -> Held:
    """Return what is held once a run is chosen: its records, and the figures of all."""
    names = set(held.runs[run]["records"].values())
    told = [
        {**each, "records": each["records"] if n == run else {}, "chosen": n == run}
        for n, each in enumerate(held.runs)
    ]
    return Held(runs=told, records={name: held.records[name] for name in sorted(names)})


def chosen(held: Held) -> int | None:
    """Return the number of the chosen run; None before one is chosen."""
    return next((n for n, each in enumerate(held.runs) if each.get("chosen")), None)


def figures(held: Held) -> list[Figures]:
    """Return the figures of all runs; none where one of them has none."""
    found = [run["figures"] for run in held.runs]
    return [] if None in found else [Figures(**each) for each in found]


def results(held: Held) -> dict[str, ByteArray]:
    """Return the bytes of each slot's result, once a run is chosen."""
    named = _named(held)
    once = {name: _joined(held.records[name]) for name in set(named.values())}
    return {slot: once[name] for slot, name in named.items() if slot}


def digests(held: Held) -> dict[str, str]:
    """Return the SHA-256 (hex) of each slot's result, once a run is chosen."""
    named = _named(held)
    once = {name: _digest(held.records[name]) for name in set(named.values())}
    return {slot: once[name] for slot, name in named.items() if slot}


def summary(held: Held) -> ByteArray | None:
    """Return the bytes of what the coordinator may read, if there is anything."""
    name = _named(held).get("")
    return None if name is None else _joined(held.records[name])


def _named(held: Held) -> Mapping[str, str]:
    """Return the names of the chosen run's records by slot."""
    if not held.runs:
        return {}
    named: Mapping[str, str] = held.runs[chosen(held) or 0]["records"]
    return named


def _joined(record: ByteArray | Joined) -> ByteArray:
    if isinstance(record, Joined):
        return np.frombuffer(b"".join(record.pieces), np.uint8)
    return record


def _digest(record: ByteArray | Joined) -> str:
    hashed = sha256()
    for piece in record.pieces if isinstance(record, Joined) else (record.data,):
        hashed.update(piece)
    return hashed.hexdigest()
