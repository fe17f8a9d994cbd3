"""Which rows of a home are those of an earlier table: one mark for each person or object.

A row is known by its id. Where tables have no ids in common, by its cells: columns of two
tables are the same if most of what occurs once in them, values or short runs of values,
occurs in both. So a field more, other headers, another order of columns or rows, rows
appended or gone make no other people. Marks are those of ids, or drawn once.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

import numpy as np

from clustering_protocols.records import codec
from clustering_protocols.records.arrays import IntArray, WordArray
from party_sdk.disclosures.row_marks import CellWords, mix
from party_sdk.disclosures.store import Store

_KIND: Final = "tables"
_RUNS: Final = (1, 2, 4, 7, 12, 20, 30)
"""Rows in a run: one of numbers, many where most say no."""

_TELLING: Final = 0.9
"""Runs of a length are compared if so many of them occur once: others do by chance."""

_COMMON: Final = 0.25
"""Such a share of what occurs once is in both; of other people a tenth by chance."""

_SAMPLE: Final = 4096
"""About so many runs of a column are compared with those of another one."""

_BITS: Final = 40.0
"""Columns of as many rows that are equal, and say so much, are of the same rows."""


class KnownTable(NamedTuple):
    """Rows that a home has seen, in their order.

    rows: uint64 (n,); the marks.
    ids: uint64 (n,), or none of a table without ids.
    cells: uint32 (F, n); see :func:`party_sdk.disclosures.row_marks.cell_words`.
    names: uint64 (F,); of the columns.
    """

    rows: WordArray
    ids: WordArray
    cells: CellWords
    names: WordArray

    def find(self, other: KnownTable) -> IntArray:
        """Return where each row of another table stands in this one; -1 for nowhere."""
        fewer = min(len(self.cells.T), len(other.cells.T))
        if len(self.ids) and len(other.ids):
            places = places_of(other.ids, self.ids)
            if 2 * np.count_nonzero(places >= 0) >= fewer:
                return places
        if len(self.cells.T) == len(other.cells.T):
            equal = [column for column in other.cells if self.has(column)]
            if sum(map(_bits, equal)) >= _BITS:
                return np.arange(fewer)
        places = _align(*self._keys(other))
        is_same = 2 * np.count_nonzero(places >= 0) >= fewer
        return places if is_same else np.full_like(places, -1)

    def has(self, column: CellWords) -> bool:
        """Return whether a column (n,) is one of this table."""
        return any(np.array_equal(column, own) for own in self.cells)

    def _keys(self, other: KnownTable) -> tuple[WordArray, WordArray]:
        """Return a word of each row of both tables, of the columns that are the same."""
        here = [_once(column) for column in self.cells]
        there = [_once(column) for column in other.cells]
        fewest = min(len(self.rows), len(other.rows), _SAMPLE) / 8
        common = np.array([[_n_common(one, two) for two in there] for one in here])
        pairs = [
            (int(n.argmax()), j) for j, n in enumerate(common.T) if max(n) > fewest
        ]
        if not pairs:  # rows may be in another order, and say little one by one
            equal = self.names[:, None] == other.names
            pairs = [(int(i), int(j)) for i, j in zip(*np.nonzero(equal), strict=True)]
        one = np.zeros(self.cells.shape[1], np.uint64)
        two = np.zeros(other.cells.shape[1], np.uint64)
        for i, j in pairs:
            one, two = mix(one + self.cells[i]), mix(two + other.cells[j])
        return one, two


class KnownRows:
    """All rows that a home has seen in sessions."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tables: dict[str, KnownTable] = {}

    def identify(self, ids: WordArray, cells: CellWords, names: WordArray) -> WordArray:
        """Return the mark of each row (n,) of a table; what is new of it is kept."""
        n_rows = cells.shape[1]
        rows = (
            ids if len(ids) else np.frombuffer(secrets.token_bytes(8 * n_rows), "<u8")
        )
        now = KnownTable(rows.copy(), ids, cells, names)
        with self._store.alone():
            is_known, new = np.zeros(n_rows, bool), np.ones(len(cells), bool)
            has_ids = not len(ids)
            for table in self._newest_first():
                if is_known.all() and has_ids and not new.any():
                    break
                places = table.find(now)
                found = (places >= 0) & ~is_known
                now.rows[found] = table.rows[places[found]]
                is_known |= found
                if np.array_equal(now.rows, table.rows):
                    new &= [not table.has(column) for column in cells]
                    has_ids |= np.array_equal(ids, table.ids)
            if not (is_known.all() and has_ids) or new.any():
                self._keep(now._replace(cells=cells[new], names=names[new]))
        return now.rows

    def _newest_first(self) -> Iterator[KnownTable]:
        """Yield all tables; columns of the same rows are of one."""
        merged: dict[bytes, KnownTable] = {}
        for name in self._store.numbers(_KIND):
            if name not in self._tables:
                self._tables[name] = _decode(self._store.read(_KIND, name))
            table = self._tables[name]
            before = merged.pop(digest := _digest(table.rows, table.ids), None)
            if before is not None:
                columns = np.vstack([before.cells, table.cells])
                both = np.concatenate([before.names, table.names])
                table = table._replace(cells=columns, names=both)
            merged[digest] = table
        yield from reversed(merged.values())

    def _keep(self, table: KnownTable) -> None:
        parts = {**table._asdict(), "cells": table.cells.view(np.int32)}
        name = _digest(*map(np.ascontiguousarray, table)).hex()
        self._store.write(_KIND, name, codec.encode({}, parts))


def _decode(content: bytes) -> KnownTable:
    _, arrays = codec.decode(content)
    return KnownTable(**{**arrays, "cells": arrays["cells"].view(np.uint32)})


def _digest(*arrays: np.ndarray) -> bytes:
    digest = blake2b(digest_size=16)
    for array in arrays:
        digest.update(len(array).to_bytes(8, "little") + array.tobytes())
    return digest.digest()


def places_of(marks: WordArray, there: WordArray) -> IntArray:
    """Return at which place each mark (n,) is found; -1 where it is not."""
    if not len(there):
        return np.full(len(marks), -1)
    order = np.argsort(there, kind="stable")
    place = np.searchsorted(there, marks, sorter=order)
    found = order[np.minimum(place, len(there) - 1)]
    return np.where(there[found] == marks, found, -1)


def _bits(column: CellWords) -> float:
    """Return how much the order of a column's values says: its entropy."""
    _, counts = np.unique(column, return_counts=True)
    return float((counts * np.log2(len(column) / counts)).sum())


def _runs(words: WordArray, length: int) -> WordArray:
    """Return a word of each run of so many rows, by its first row."""
    n_runs = max(len(words) - length + 1, 0)
    found = np.zeros(n_runs, np.uint64)
    for place in range(length):
        found = mix(found + words[place : place + n_runs])
    return found


def _once(column: CellWords) -> Sequence[WordArray]:
    """Return what occurs once in a column, sorted, of each length of runs; a sample."""
    most = np.uint64((2**64 - 1) // max(1, len(column) // _SAMPLE))
    found = []
    for length in _RUNS:
        runs = _runs(mix(column.astype(np.uint64)), length)
        found.append(_find_once(runs[runs <= most])[0])
    return found


def _n_common(one: Sequence[WordArray], two: Sequence[WordArray]) -> int:
    """Return how much of what occurs once in columns occurs in both, if enough does."""
    found = [len(_meet(*pair)[0]) for pair in zip(one, two, strict=True)]
    pairs = zip(found, one, two, strict=True)
    return max(n if n >= _COMMON * min(map(len, pair)) else 0 for n, *pair in pairs)


def _align(one: WordArray, two: WordArray) -> IntArray:
    """Return which row of one each row of two is; -1 where nothing says it.

    First by what occurs once in both, then rows that are equal in their order.
    """
    places = np.full(len(two), -1)
    for length in _RUNS:
        here, there = (_find_once(_runs(words, length)) for words in (one, two))
        i, j = _meet(here[0], there[0])
        if len(i) >= _COMMON * min(len(here[0]), len(there[0])):
            for step in range(length):
                places[there[1][j] + step] = here[1][i] + step
    if not (places >= 0).any():
        return places
    left, new = np.setdiff1d(np.arange(len(one)), places), np.flatnonzero(places < 0)
    i, j = _meet(_numbered(one[left]), _numbered(two[new]))
    places[new[j]] = left[i]
    return places


def _meet(one: WordArray, two: WordArray) -> tuple[IntArray, IntArray]:
    """Return where words that are in both stand in each; none is in one twice."""
    _, i, j = np.intersect1d(one, two, assume_unique=True, return_indices=True)
    return i, j


def _find_once(words: WordArray) -> tuple[WordArray, IntArray]:
    """Return the words that occur once, sorted, and where; none if few do."""
    values, first, counts = np.unique(words, return_index=True, return_counts=True)
    once = (counts == 1) & (np.count_nonzero(counts == 1) >= _TELLING * len(words))
    return values[once], first[once]


def _numbered(words: WordArray) -> WordArray:
    """Return words that are all different: equal ones are counted."""
    order = np.argsort(words, kind="stable")
    ordered = words[order]
    begins = np.searchsorted(ordered, ordered)
    found = np.empty_like(words)
    found[order] = mix(ordered + (np.arange(len(words)) - begins).astype(np.uint64))
    return found
