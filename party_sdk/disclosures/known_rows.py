"""Which rows of a home are those of an earlier table: one mark for each person or object.

A row is known by its id. Where tables have no ids in common, by its cells: columns of two
tables are the same if most of what occurs once in them, values or short runs of values,
occurs in both. So a field more, other headers, another order of columns or rows, rows
appended or gone make no other people. Marks are those of ids, or drawn once.

What is compared are keyed words. A word of an id is AES of a keyed hash. One of a cell is
half of a keyed hash of its value as the table has it, of the same value in whichever
column the same: names say nothing. Who has not the key learns which cells are alike, and
no value.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from clustering_protocols.numerics.data_source import DataSource, original_of
from clustering_protocols.numerics.randomness import derive_key
from clustering_protocols.records import codec
from clustering_protocols.records.arrays import IntArray, WordArray
from party_sdk.home.store import store_of

if TYPE_CHECKING:
    import pyarrow as pa


class Store:
    """Contents by kind and name; a new one takes the place of an earlier one."""

    def __init__(self, home: Path) -> None:
        self._database = store_of(home)

    def alone(self) -> AbstractContextManager[object]:
        """Keep other processes from what is read and written meanwhile."""
        return self._database.transaction()

    def numbers(self, kind: str) -> dict[str, int]:
        """Return the names of a kind, oldest content first; each has its number."""
        found = self._database.rows(
            "SELECT name, number FROM disclosures WHERE kind = ? ORDER BY number", kind
        )
        return dict(map(tuple, found))

    def read(self, kind: str, name: str) -> bytes:
        """Return a content."""
        query = "SELECT content FROM disclosures WHERE kind = ? AND name = ?"
        content: bytes = self._database.row(query, kind, name)[0]
        return content

    def write(self, kind: str, name: str, content: bytes) -> None:
        """Write or replace a content, durably."""
        with self._database.transaction() as database:
            database.execute(
                "INSERT INTO disclosures (kind, name, content) VALUES (?, ?, ?)",
                (kind, name, content),
            )


CellWords = NDArray[np.uint32]

MOST_COLUMNS: Final = 64
"""Columns of wider tables are added up, by their names, to so many."""

_BATCH: Final = 1 << 15
"""So many words are enciphered at once."""

_BASE: Final = np.uint64(0x9E3779B97F4A7C15)
_INVERSE: Final = np.uint64(pow(int(_BASE), -1, 2**64))
_SHIFTS: Final = (np.uint64(30), np.uint64(27), np.uint64(31))
_FACTORS: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def row_key(home: Path) -> bytes:
    """Return the 32 bytes under which a home marks rows; drawn at the first use."""
    store = store_of(home)
    query = "SELECT content FROM secrets WHERE name = 'row key'"
    if (found := store.row(query)) is None:
        with store.transaction() as database:
            key = secrets.token_bytes(32)
            database.execute(
                "INSERT OR IGNORE INTO secrets VALUES ('row key', ?)", (key,)
            )
            found = store.row(query)
    return bytes(found[0])


def mix(words: WordArray) -> WordArray:
    """Return other words for other ones: the last step of splitmix64."""
    words = (words ^ (words >> _SHIFTS[0])) * _FACTORS[0]
    words ^= words >> _SHIFTS[1]
    words *= _FACTORS[1]
    return words ^ (words >> _SHIFTS[2])


def stretches(words: WordArray, begins: IntArray, ends: IntArray) -> WordArray:
    """Return a word of each stretch of words: a rolling hash, of Rabin and Karp."""
    powers = np.full(len(words) + 1, _BASE, np.uint64).cumprod()
    sums = np.concatenate([np.zeros(1, np.uint64), (words * powers[:-1]).cumsum()])
    inverse = np.full(len(words) + 1, _INVERSE, np.uint64).cumprod()
    found: WordArray = (sums[ends] - sums[begins]) * inverse[begins]
    return found


def cell_words(key: bytes, data: DataSource) -> tuple[CellWords, WordArray]:
    """Return a word for each cell before any mapping, and for the name of each column.

    Returns uint32 (F, n), 0 for no value, and uint64 (F,).
    """
    own = original_of(data)
    names = np.array([_salt(key, "columns", each) for each in own.columns])
    first, then = _salt(key, "cells", "0"), np.array([_salt(key, "cells", "1")])
    rows = np.arange(len(names))
    if len(names) > MOST_COLUMNS:
        rows, then = (names % MOST_COLUMNS).astype(np.int64), then + names
        names = np.arange(MOST_COLUMNS, dtype=np.uint64)
    found, begin = np.zeros((len(names), own.n_rows), np.uint32), 0
    for batch in own.batches():
        # a zero is written with a sign or without
        words = (np.asarray(batch, dtype=np.float64) + 0.0).view(np.uint64)
        words = mix(mix(words ^ first) + then)
        halves = (words >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
        halves[np.isnan(batch)] = 0
        for row, column in zip(rows, halves.T, strict=True):
            found[row, begin : begin + len(batch)] += column
        begin += len(batch)
    return found, names


def id_marks(key: bytes, ids: Sequence[str] | None) -> WordArray:
    """Return a word for each id (n,); none of a table without ids."""
    if ids is None:
        return np.empty(0, np.uint64)
    # not above: who joins or coordinates has no table yet, and starts without Arrow
    import pyarrow as pa

    from party_sdk.tables import ArrowIds

    if not isinstance(ids, ArrowIds):
        ids = ArrowIds([pa.array(ids, pa.large_string())])
    pieces = [
        piece.slice(begin, _BATCH)
        for piece in ids.arrow.chunks
        for begin in range(0, len(piece), _BATCH)
    ]
    parts = [_of_texts(key, piece) for piece in pieces]
    return _encipher_words(key, "ids", np.concatenate([np.empty(0, np.uint64), *parts]))


def _of_texts(key: bytes, texts: pa.Array) -> WordArray:
    """Return the hashes (b,) of texts."""
    content, ends = _bytes_of(texts)
    letters = _encipher_words(key, "letters", np.arange(256, dtype=np.uint64))
    words, ends = letters[content[ends[0] : ends[-1]]], ends - ends[0]
    return stretches(words, ends[:-1], ends[1:])


def _bytes_of(texts: pa.Array) -> tuple[NDArray[np.uint8], IntArray]:
    """Return the buffer of texts in UTF-8, and where (b + 1,) each begins and ends."""
    _, offsets, content = texts.buffers()
    if not len(texts):  # there may be no buffers
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    # a slice has the buffers of the whole: its texts begin and end somewhere inside
    ends = np.frombuffer(offsets, np.int64)[texts.offset :][: len(texts) + 1]
    return np.frombuffer(content or b"", np.uint8), ends


def _salt(key: bytes, what: str, name: str) -> np.uint64:
    drawn = derive_key(key, "row marks", what, name)
    return np.uint64(int.from_bytes(drawn[:8], "little"))


def _encipher_words(key: bytes, what: str, words: WordArray) -> WordArray:
    """Return words (n,) under AES: who has not the key learns nothing of them."""
    # one block a word and no message: equal rows are to have equal marks
    cipher = Cipher(algorithms.AES(derive_key(key, "row marks", what)), modes.ECB())  # noqa: S305  see above
    encryptor, marks = cipher.encryptor(), np.empty(len(words), dtype=np.uint64)
    blocks = np.zeros((_BATCH, 2), dtype="<u8")
    made = np.empty((_BATCH + 1, 2), dtype="<u8")  # a block more, as the library asks
    for begin in range(0, len(words), _BATCH):
        some = words[begin : begin + _BATCH]
        blocks[: len(some), 0] = some
        encryptor.update_into(blocks[: len(some)].data.cast("B"), made.data.cast("B"))
        marks[begin : begin + len(some)] = made[: len(some), 0]
    return marks


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
    cells: uint32 (F, n); see :func:`party_sdk.disclosures.known_rows.cell_words`.
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
