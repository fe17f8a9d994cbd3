"""``shown.arrays``: marks of tables and the uses that sessions made of them, on disk."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from pydantic import BaseModel, ConfigDict

from clustering_protocols import codec
from clustering_protocols.arrays import WordArray
from clustering_protocols.contract.shown import Kind
from party_sdk.column_sketches import have_one_in_common
from party_sdk.row_marks import PROFILED, RowMarks
from party_sdk.sealing import SecretFiles

FILE: Final = "shown.arrays"
_ROWS: Final = ("ids", "cells", "table")
_FEWEST_COMMON: Final = 10
"""Tables of fewer rows in common are of other people."""


class Use(BaseModel):
    """What one session shows of a table.

    Attributes
    ----------
    session : str
        Names session and agreement: a session that goes on is itself, and what its slots
        show together is for its terms to say.
    analyst, coordinator : str, optional
        Their public keys; None where the terms name none, or nobody knows any more.
    outside : frozenset of Kind
        What analyst and coordinator get.
    way : str
        Protocol and columns.
    published : bool
        Whether means of clusters leave the rows' own parties, or a profile is added up.
    smallest : int
        Fewest rows that may be new, or gone, between two uses that publish.
    """

    model_config = ConfigDict(frozen=True)

    session: str = ""
    analyst: str | None = None
    coordinator: str | None = None
    outside: frozenset[Kind] = frozenset()
    way: str = ""
    published: bool = False
    smallest: int = 1

    def has_reader_of(self, other: Use) -> bool:
        """Return whether both have the same analyst or coordinator, as far as is known."""
        pairs = (
            (self.analyst, other.analyst),
            (self.coordinator, other.coordinator),
        )
        return any(None in pair or pair[0] == pair[1] for pair in pairs)


_OF_0_2_0: Final = Use(outside=frozenset({Kind.MEANS}), published=True)
"""Of a profile that 0.2.0 kept marks of: who read it is not known any more."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShownTable:
    """The marks of one table and what was shown of it.

    Attributes
    ----------
    rows : mapping of str to uint64 array of shape (n,)
        Marks by kind (``ids``, ``cells``, ``table``), sorted.
    sketches : mapping of str to uint64 array of shape (2, m)
    uses : tuple of Use
    """

    rows: Mapping[str, WordArray] = field(repr=False)
    sketches: Mapping[str, WordArray] = field(repr=False)
    uses: tuple[Use, ...]

    @classmethod
    def of(cls, marks: RowMarks, uses: tuple[Use, ...]) -> ShownTable:
        """Return what is kept of the marks of a table."""
        rows = _sorted(marks)
        del rows["table"]  # what 0.2.0 kept is compared with it, and nothing else
        return cls(rows=rows, sketches=marks.sketches, uses=uses)

    def and_for(self, use: Use) -> ShownTable:
        """Return the same table after another use."""
        return replace(self, uses=(*self.uses, use))

    def besides(self, use: Use) -> Iterator[Use]:
        """Yield the uses by other sessions."""
        yield from (each for each in self.uses if each.session != use.session)

    def is_of(self, marks: RowMarks) -> bool:
        """Return whether these marks are of exactly this table."""
        now = _sorted(marks)
        kept = self.rows.keys() - {"table"}
        return kept == now.keys() - {"table"} and all(
            np.array_equal(self.rows[kind], now[kind]) for kind in kept
        )

    def is_same(self, marks: RowMarks) -> bool:
        """Return whether the rows are the same, by one of their marks or by columns."""
        now = _sorted(marks)
        changed = list(self._n_changed(now))
        return 0 in changed or have_one_in_common(self.sketches, marks.sketches)

    def is_like(self, marks: RowMarks) -> bool:
        """Return whether the tables share rows, or a column of (nearly) the same values."""
        now = _sorted(marks)
        return any(
            len(np.intersect1d(self.rows[kind], now[kind])) >= _FEWEST_COMMON
            for kind in self.rows.keys() & now.keys()
        ) or have_one_in_common(self.sketches, marks.sketches)

    def n_changed(self, marks: RowMarks) -> Iterator[int]:
        """Yield how many rows are new or gone, whichever is more, by each kind of mark."""
        yield from self._n_changed(_sorted(marks))

    def _n_changed(self, now: Mapping[str, WordArray]) -> Iterator[int]:
        for kind in self.rows.keys() & now.keys():
            yield _n_different(self.rows[kind], now[kind])


class ShownFile:
    """Tables as ``shown.arrays`` of a home keeps them.

    Until it is first written, what 0.2.0 left in ``profiled.arrays`` counts.
    """

    def __init__(self, home: Path) -> None:
        self._files = SecretFiles(home)
        self.path, self._older = home / FILE, home / PROFILED

    def read(self) -> list[ShownTable]:
        """Return all tables; none of a home that showed nothing."""
        if self.path.exists():
            return _unpacked(self._files.read(self.path))
        if self._older.exists():
            return _of_profiles(self._files.read(self._older))
        return []

    def write(self, tables: Sequence[ShownTable]) -> None:
        """Replace the file in one step."""
        self._files.write(self.path, _packed(tables))
        self._older.unlink(missing_ok=True)  # its tables are among these


def _packed(tables: Sequence[ShownTable]) -> bytes:
    """Return tables as arrays, each of one kind over all tables, and what they are."""
    listed = [
        {
            "rows": {kind: len(found) for kind, found in each.rows.items()},
            "sketches": {m: found.shape[1] for m, found in each.sketches.items()},
            "uses": [use.model_dump(mode="json") for use in each.uses],
        }
        for each in tables
    ]
    arrays: dict[str, Any] = {
        kind: _joined([each.rows[kind] for each in tables if kind in each.rows])
        for kind in _ROWS
    }
    parts = [found.ravel() for each in tables for found in each.sketches.values()]
    text = json.dumps(listed).encode()
    arrays |= {
        "sketches": _joined(parts),
        "tables": np.frombuffer(text, dtype=np.uint8),
    }
    return codec.encode({"shown": 1}, arrays)


def _unpacked(content: bytes) -> list[ShownTable]:
    _, arrays = codec.decode(content)
    places = dict.fromkeys(arrays, 0)

    def take(name: str, size: int) -> WordArray:
        begin = places[name]
        places[name] = begin + size
        return np.array(arrays[name][begin : begin + size])

    return [
        ShownTable(
            rows={kind: take(kind, size) for kind, size in each["rows"].items()},
            sketches={
                mark: take("sketches", 2 * size).reshape(2, size)
                for mark, size in each["sketches"].items()
            },
            uses=tuple(map(Use.model_validate, each["uses"])),
        )
        for each in json.loads(arrays["tables"].tobytes())
    ]


def _of_profiles(content: bytes) -> list[ShownTable]:
    """Return the tables of which 0.2.0 kept that they were in profiles."""
    _, arrays = codec.decode(content)
    rows: dict[str, dict[str, WordArray]] = {}
    for name, found in arrays.items():
        kind, number = name.split(".")
        rows.setdefault(number, {})[kind] = np.array(found)
    return [
        ShownTable(rows=each, sketches={}, uses=(_OF_0_2_0,)) for each in rows.values()
    ]


def _joined(parts: Sequence[WordArray]) -> WordArray:
    return np.concatenate([np.empty(0, dtype=np.uint64), *parts])


def _sorted(marks: RowMarks) -> dict[str, WordArray]:
    found = {"cells": marks.cells, "table": marks.table}
    if marks.ids is not None:
        found["ids"] = marks.ids
    return {kind: np.sort(each) for kind, each in found.items()}


def _n_different(before: WordArray, now: WordArray) -> int:
    """Return how many marks are new or gone, whichever is more."""
    marks, place = np.unique(np.concatenate([before, now]), return_inverse=True)
    sign = np.repeat([-1, 1], [len(before), len(now)])
    difference = np.bincount(place, sign, minlength=len(marks))
    return int(max(difference.clip(min=0).sum(), -difference.clip(max=0).sum()))
