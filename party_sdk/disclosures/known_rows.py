"""Which rows of a home are those of an earlier table: one mark for each person or object.

A row is known by its id. Where tables have no ids in common, by its cells: columns of two
tables are the same if most of what occurs once in them, values or short runs of values,
occurs in both. So a field more, other headers, another order of columns or rows, rows
appended or gone make no other people. Marks are those of ids, or drawn once.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from hashlib import blake2b
from typing import Final, NamedTuple

import numpy as np

from clustering_protocols.records import codec
from clustering_protocols.records.arrays import IntArray, WordArray
from party_sdk.disclosures.row_marks import CellWords, mix, stretches
from party_sdk.disclosures.store import Store

_KIND: Final = "tables"
_RUNS: Final = (1, 2, 4, 7, 12, 20, 30)
"""Rows in a run: one of numbers, many where most say no."""

_TELLING: Final = 0.9

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
        if len(self.ids) and np.array_equal(self.ids, other.ids):
            return np.arange(fewer)
        if len(self.ids) and len(other.ids):
            places = places_of(other.ids, self.ids)
            if 2 * np.count_nonzero(places >= 0) >= fewer:
                return places
        if len(self.cells.T) == len(other.cells.T):
            equal = [column[:_SAMPLE] for column in other.cells if self.has(column)]
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
        here, there = ([*map(_sample, each.cells)] for each in (self, other))
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
    order = np.argsort(there)
    place = np.searchsorted(there[order], marks)
    found = order[np.minimum(place, len(there) - 1)]
    return np.where(there[found] == marks, found, -1)


def _bits(column: CellWords) -> float:
    """Return how much the order of a column's values says: its entropy."""
    _, counts = np.unique(column, return_counts=True)
    return float((counts * np.log2(len(column) / counts)).sum())


def _find_runs(
    words: WordArray, most: np.uint64
) -> Iterator[tuple[int, WordArray, IntArray]]:
    """Yield what occurs once of runs up to a word, sorted, and where.

    Of the two shortest lengths of which most runs occur once: others do by chance.
    """
    n_found, words = 0, mix(words)
    for length in _RUNS:
        begins = np.arange(max(len(words) - length + 1, 0))
        runs = stretches(words, begins, begins + length)
        rows = np.flatnonzero(runs <= most)
        values, first, counts = np.unique(
            runs[rows], return_index=True, return_counts=True
        )
        once = counts == 1
        if n_found < 2 and np.count_nonzero(once) >= max(_TELLING * len(rows), 1):
            yield length, values[once], rows[first[once]]
            n_found += 1


def _sample(column: CellWords) -> dict[int, WordArray]:
    """Return what occurs once in a column by the length of runs; of many rows a sample."""
    most = np.uint64((2**64 - 1) // max(1, len(column) // _SAMPLE))
    found = _find_runs(column.astype(np.uint64), most)
    return {length: values for length, values, _ in found}


def _n_common(one: dict[int, WordArray], two: dict[int, WordArray]) -> int:
    """Return how much of what occurs once in columns occurs in both, if enough does."""
    both = one.keys() & two.keys()
    return max((len(_meet(one[each], two[each])[0]) for each in both), default=0)


def _align(one: WordArray, two: WordArray) -> IntArray:
    """Return which row of one each row of two is; -1 where nothing says it.

    First by what occurs once in both, then rows that are equal in their order.
    """
    places = np.full(len(two), -1)
    every = np.uint64(2**64 - 1)
    here = {length: (found, at) for length, found, at in _find_runs(one, every)}
    for length, values, rows in _find_runs(two, every):
        if length in here:
            i, j = _meet(here[length][0], values)
            for step in range(length):
                places[rows[j] + step] = here[length][1][i] + step
    if not (places >= 0).any():
        return places
    left, new = np.setdiff1d(np.arange(len(one)), places), np.flatnonzero(places < 0)
    equal = places_of(_numbered(two[new]), _numbered(one[left]))
    places[new[equal >= 0]] = left[equal[equal >= 0]]
    return places


def _meet(one: WordArray, two: WordArray) -> tuple[IntArray, IntArray]:
    """Return where words that are in both stand in each, if enough are; none is twice."""
    _, i, j = np.intersect1d(one, two, assume_unique=True, return_indices=True)
    enough = len(i) >= _COMMON * min(len(one), len(two))
    return (i, j) if enough else (i[:0], j[:0])


def _numbered(words: WordArray) -> WordArray:
    """Return words that are all different: equal ones are counted."""
    order = np.argsort(words, kind="stable")
    ordered = words[order]
    begins = np.searchsorted(ordered, ordered)
    found = np.empty_like(words)
    found[order] = mix(ordered + (np.arange(len(words)) - begins).astype(np.uint64))
    return found
