"""``shown.arrays``: marks of tables and the uses that sessions made of them, on disk."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from pydantic import BaseModel, ConfigDict

from clustering_protocols.contract.disclosures import Kind
from clustering_protocols.records import codec
from clustering_protocols.records.arrays import IntArray, WordArray
from party_sdk.disclosures.column_sketches import have_one_in_common
from party_sdk.disclosures.row_marks import CLUSTERED, RowMarks
from party_sdk.home.files import read_private, write_private

FILE: Final = "shown.arrays"
_ROWS: Final = ("ids", "cells", CLUSTERED)
_FEWEST_COMMON: Final = 10
"""Tables of fewer rows in common are of other people."""


class Use(BaseModel):
    """What one session shows of a table.

    session: names session and agreement: a session that continues is itself, and what its
        slots show together is for its terms to say.
    analyst, coordinator: their public keys; None where the terms name none, or nobody
        knows any more.
    outside: what analyst and coordinator get.
    parties: public keys of the other parties; the empty text stands for an open slot.
    everybody: what every party gets, of variables that it does not hold too.
    way: protocol and columns.
    published: whether means of clusters leave the rows' own parties, or a profile is
        added up.
    smallest: fewest rows that may be new, or gone, between two uses that publish.
    """

    model_config = ConfigDict(frozen=True)

    session: str = ""
    analyst: str | None = None
    coordinator: str | None = None
    outside: frozenset[Kind] = frozenset()
    parties: frozenset[str] = frozenset()
    everybody: frozenset[Kind] = frozenset()
    way: str = ""
    published: bool = False
    smallest: int = 1

    @property
    def shows(self) -> bool:
        """Return whether somebody else reads something of the rows."""
        return bool(self.outside or self.everybody or self.published)

    def readers_of(self, kind: Kind) -> frozenset[str]:
        """Return the keys of those who get a kind; an empty text where one is unknown."""
        found: frozenset[str] = frozenset()
        if kind in self.outside:
            found |= {self.analyst or "", self.coordinator or ""}
        return found | self.parties if kind in self.everybody else found


def share_one(some: frozenset[str], others: frozenset[str]) -> bool:
    """Return whether two groups of keys have one in common, as far as is known."""
    is_open = "" in some | others
    return bool(some and others) if is_open else bool(some & others)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShownTable:
    """The marks of one table and what was shown of it.

    rows: mapping of str to uint64 (n,); marks by kind (``ids``, ``cells``,
        ``clustered`` where that is less), sorted.
    sketches: mapping of str to uint64 (2, m).
    """

    rows: Mapping[str, WordArray] = field(repr=False)
    sketches: Mapping[str, WordArray] = field(repr=False)
    uses: tuple[Use, ...]

    @classmethod
    def of(cls, marks: RowMarks, uses: tuple[Use, ...]) -> ShownTable:
        """Return what is kept of the marks of a table."""
        return cls(rows=marks.by_kind, sketches=marks.sketches, uses=uses)

    def and_for(self, use: Use) -> ShownTable:
        """Return the same table after another use."""
        return replace(self, uses=(*self.uses, use))

    def besides(self, use: Use) -> Iterator[Use]:
        """Yield the uses by other sessions."""
        yield from (each for each in self.uses if each.session != use.session)

    def is_of(self, marks: RowMarks) -> bool:
        """Return whether these marks are of exactly this table."""
        now = marks.by_kind
        return self.rows.keys() == now.keys() and all(
            np.array_equal(self.rows[kind], now[kind]) for kind in now
        )

    def is_same(self, marks: RowMarks) -> bool:
        """Return whether the rows are the same, by one of their marks or by columns."""
        return 0 in self.n_changed(marks) or have_one_in_common(
            self.sketches, marks.sketches
        )

    def is_like(self, marks: RowMarks) -> bool:
        """Return whether the tables share rows, or a column of (nearly) the same values."""
        return any(
            _n_common(before, now) >= _FEWEST_COMMON
            for before, now in self._pairs_with(marks)
        ) or have_one_in_common(self.sketches, marks.sketches)

    def n_changed(self, marks: RowMarks) -> Iterator[int]:
        """Yield how many rows are new or gone, whichever is more, by each kind of mark."""
        for before, now in self._pairs_with(marks):
            yield _n_different(before, now)

    def _pairs_with(self, marks: RowMarks) -> Iterator[tuple[WordArray, WordArray]]:
        """Yield the marks of this table and the own ones that can be compared."""
        now = marks.by_kind
        for kind in self.rows.keys() & now.keys():
            yield self.rows[kind], now[kind]
        if CLUSTERED in {*self.rows, *now} and "cells" in self.rows:
            # where nothing is described, all cells are clustered
            before = self.rows.get(CLUSTERED, self.rows["cells"])
            yield before, now.get(CLUSTERED, now["cells"])


class ShownFile:
    """Tables as ``shown.arrays`` of a home keeps them."""

    def __init__(self, home: Path) -> None:
        self.path = home / FILE

    def read(self) -> list[ShownTable]:
        """Return all tables; none of a home that showed nothing."""
        if self.path.exists():
            return _unpack_tables(read_private(self.path))
        return []

    def write(self, tables: Sequence[ShownTable]) -> None:
        """Replace the file in one step."""
        write_private(self.path, _pack_tables(tables))


def _pack_tables(tables: Sequence[ShownTable]) -> bytes:
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
        kind: _concatenate([each.rows[kind] for each in tables if kind in each.rows])
        for kind in _ROWS
    }
    parts = [found.ravel() for each in tables for found in each.sketches.values()]
    text = json.dumps(listed).encode()
    arrays |= {
        "sketches": _concatenate(parts),
        "tables": np.frombuffer(text, dtype=np.uint8),
    }
    return codec.encode({"shown": 1}, arrays)


def _unpack_tables(content: bytes) -> list[ShownTable]:
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


def _concatenate(parts: Sequence[WordArray]) -> WordArray:
    return np.concatenate([np.empty(0, dtype=np.uint64), *parts])


def _n_common(before: WordArray, now: WordArray) -> int:
    """Return how many different marks both have, each of them sorted."""
    if np.array_equal(before, now):  # the same table again, as usual
        return min(len(now), 1) + int(np.count_nonzero(now[1:] != now[:-1]))
    values, _ = _count_marks(now)
    return int((_counts_of(values, before) > 0).sum())


def _n_different(before: WordArray, now: WordArray) -> int:
    """Return how many marks are new or gone, whichever is more; both are sorted."""
    if np.array_equal(before, now):
        return 0  # the same table again, as usual
    ways = ((before, now), (now, before))
    return max(_n_beyond(some, others) for some, others in ways)


def _n_beyond(some: WordArray, others: WordArray) -> int:
    """Return how many of some marks the others lack, each as often as it occurs."""
    values, counts = _count_marks(some)
    return int((counts - _counts_of(values, others)).clip(min=0).sum())


def _count_marks(marks: WordArray) -> tuple[WordArray, IntArray]:
    """Return the different ones of sorted marks, and how often each occurs."""
    begins = np.flatnonzero(np.diff(marks, prepend=~marks[:1]))
    return marks[begins], np.diff(begins, append=len(marks))


def _counts_of(values: WordArray, marks: WordArray) -> IntArray:
    """Return how often each value occurs among sorted marks."""
    begins = np.searchsorted(marks, values)
    return np.searchsorted(marks, values, side="right") - begins
