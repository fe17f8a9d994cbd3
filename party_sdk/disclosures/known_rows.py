"""Marks that identify rows of earlier tables, one per person or object.

A row is recognised by its id or, if two tables share no ids, by its cells. Two columns
are assumed to be the same if at least a quarter of their unique values, or unique short
runs of values, occur in both. Rows are thus recognised in a table with additional
fields, other headers, another order of columns or rows, or with rows added or removed.
A mark is computed from the id, or drawn at random when a row without an id is first
seen. If a row is recognised in two tables where it has different marks, both marks are
stored as those of one row.

Only keyed words are stored and compared. The word of an id is the AES encryption of a
keyed hash; the word of a cell is half of a keyed hash of its value before any mapping.
Equal values have the same word in every column, unless the table has more than 64
columns. Without the key, one can see which cells are equal, but no values.
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

from clustering_protocols.numerics.data_source import DataSource, find_original_source
from clustering_protocols.numerics.randomness import derive_key
from clustering_protocols.records import codec
from clustering_protocols.records.arrays import IntArray, WordArray
from party_sdk.home.store import store_of

if TYPE_CHECKING:
    import pyarrow as pa


class Store:
    """All that a home stores about disclosures; each content has a kind and a name."""

    def __init__(self, home: Path) -> None:
        self._database = store_of(home)

    def locked(self) -> AbstractContextManager[object]:
        """Lock the store against other processes."""
        return self._database.transaction()

    def numbers(self, kind: str) -> dict[str, int]:
        """Return the names of a kind, with numbers that grow in the order of writing."""
        rows = self._database.fetch_rows(
            "SELECT name, number FROM disclosures WHERE kind = ? ORDER BY number", kind
        )
        return dict(map(tuple, rows))

    def read(self, kind: str, name: str) -> bytes:
        """Return the content that is stored under a kind and a name."""
        query = "SELECT content FROM disclosures WHERE kind = ? AND name = ?"
        content: bytes = self._database.fetch_row(query, kind, name)[0]
        return content

    def write(self, kind: str, name: str, content: bytes) -> None:
        """Store a content durably; it replaces one of the same kind and name."""
        with self._database.transaction() as database:
            database.execute(
                "INSERT INTO disclosures (kind, name, content) VALUES (?, ?, ?)",
                (kind, name, content),
            )


CellWords = NDArray[np.uint32]

MOST_COLUMNS: Final = 64
"""The columns of a wider table are summed into this many, by their names."""

_BATCH: Final = 1 << 15
"""Number of words that are encrypted at once."""

_BASE: Final = np.uint64(0x9E3779B97F4A7C15)
_INVERSE: Final = np.uint64(pow(int(_BASE), -1, 2**64))
_SHIFTS: Final = (np.uint64(30), np.uint64(27), np.uint64(31))
_FACTORS: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def row_key(home: Path) -> bytes:
    """Return the home's 32-byte key for marks of rows, which is drawn on first use."""
    store = store_of(home)
    query = "SELECT content FROM secrets WHERE name = 'row key'"
    if (row := store.fetch_row(query)) is None:
        with store.transaction() as database:
            key = secrets.token_bytes(32)
            database.execute(
                "INSERT OR IGNORE INTO secrets VALUES ('row key', ?)", (key,)
            )
            row = store.fetch_row(query)
    return bytes(row[0])


def mix(words: WordArray) -> WordArray:
    """Mix 64-bit words: the finaliser of splitmix64."""
    words = (words ^ (words >> _SHIFTS[0])) * _FACTORS[0]
    words ^= words >> _SHIFTS[1]
    words *= _FACTORS[1]
    return words ^ (words >> _SHIFTS[2])


def hash_stretches(words: WordArray, begins: IntArray, ends: IntArray) -> WordArray:
    """Return a hash of each stretch words[begin:end], by the method of Rabin and Karp."""
    powers = np.full(len(words) + 1, _BASE, np.uint64).cumprod()
    sums = np.concatenate([np.zeros(1, np.uint64), (words * powers[:-1]).cumsum()])
    inverse = np.full(len(words) + 1, _INVERSE, np.uint64).cumprod()
    hashes: WordArray = (sums[ends] - sums[begins]) * inverse[begins]
    return hashes


def hash_cells(key: bytes, data: DataSource) -> tuple[CellWords, WordArray]:
    """Return keyed hashes of all cells, before any mapping, and of the columns' names.

    Returns uint32 (F, n) for the cells, with 0 for a missing value, and uint64 (F,) for
    the names. A table of more than 64 columns gives sums for 64 columns.
    """
    original = find_original_source(data)
    names = np.array([_salt(key, "columns", name) for name in original.columns])
    salt, salts = _salt(key, "cells", "0"), np.array([_salt(key, "cells", "1")])
    rows = np.arange(len(names))
    if len(names) > MOST_COLUMNS:
        rows, salts = (names % MOST_COLUMNS).astype(np.int64), salts + names
        names = np.arange(MOST_COLUMNS, dtype=np.uint64)
    words_by_column, begin = np.zeros((len(names), original.n_rows), np.uint32), 0
    for batch in original.batches():
        # adding 0.0 turns -0.0 into 0.0
        words = (np.asarray(batch, dtype=np.float64) + 0.0).view(np.uint64)
        words = mix(mix(words ^ salt) + salts)
        halves = (words >> np.uint64(32)).astype(np.uint32) | np.uint32(1)
        halves[np.isnan(batch)] = 0
        for row, column in zip(rows, halves.T, strict=True):
            words_by_column[row, begin : begin + len(batch)] += column
        begin += len(batch)
    return words_by_column, names


def id_marks(key: bytes, ids: Sequence[str] | None) -> WordArray:
    """Return a mark for each id (n,); empty for a table without ids."""
    if ids is None:
        return np.empty(0, np.uint64)
    # imported here, since joining and coordinating need no Arrow
    import pyarrow as pa

    from party_sdk.tables import ArrowIds

    if not isinstance(ids, ArrowIds):
        ids = ArrowIds([pa.array(ids, pa.large_string())])
    pieces = [
        piece.slice(begin, _BATCH)
        for piece in ids.arrow.chunks
        for begin in range(0, len(piece), _BATCH)
    ]
    letters = _encipher_words(key, "letters", np.arange(256, dtype=np.uint64))
    hashes = [np.empty(0, np.uint64)]
    for piece in pieces:
        content, ends = _bytes_of(piece)
        words, ends = letters[content[ends[0] : ends[-1]]], ends - ends[0]
        hashes.append(hash_stretches(words, ends[:-1], ends[1:]))
    return _encipher_words(key, "ids", np.concatenate(hashes))


def _bytes_of(texts: pa.Array) -> tuple[NDArray[np.uint8], IntArray]:
    """Return the UTF-8 buffer (b,) of n texts, and the offsets (n + 1,) of their ends."""
    _, offsets, content = texts.buffers()
    if not len(texts):  # there may be no buffers
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    # a slice shares the buffers of the whole array
    ends = np.frombuffer(offsets, np.int64)[texts.offset :][: len(texts) + 1]
    return np.frombuffer(content or b"", np.uint8), ends


def _salt(key: bytes, purpose: str, name: str) -> np.uint64:
    key_bytes = derive_key(key, "row marks", purpose, name)
    return np.uint64(int.from_bytes(key_bytes[:8], "little"))


def _encipher_words(key: bytes, purpose: str, words: WordArray) -> WordArray:
    """Return words (n,) encrypted with AES; without the key, only equality can be seen."""
    # each word is one block, and equal words must get equal marks
    cipher = Cipher(algorithms.AES(derive_key(key, "row marks", purpose)), modes.ECB())  # noqa: S305  see above
    encryptor, marks = cipher.encryptor(), np.empty(len(words), dtype=np.uint64)
    blocks = np.zeros((_BATCH, 2), dtype="<u8")
    output = np.empty((_BATCH + 1, 2), dtype="<u8")  # the library needs one more block
    for begin in range(0, len(words), _BATCH):
        batch = words[begin : begin + _BATCH]
        blocks[: len(batch), 0] = batch
        encryptor.update_into(
            blocks[: len(batch)].data.cast("B"), output.data.cast("B")
        )
        marks[begin : begin + len(batch)] = output[: len(batch), 0]
    return marks


_KIND, _SAME = "tables", "same"
_RUNS: Final = (1, 2, 4, 7, 12, 20, 30)
"""Lengths of runs: one row for numbers, many rows for columns of mostly equal values."""

_LEAST_UNIQUE: Final = 0.9
"""Runs of a length are compared if at least this proportion of them is unique."""

_COMMON: Final = 0.25
"""The least proportion of unique runs that equal columns share; others share a tenth."""

_SAMPLE: Final = 4096
"""Approximate number of runs of a column that are compared."""

_BITS: Final = 40.0
"""Equal columns with this entropy, in tables of equal length, mean the same rows."""


class KnownTable(NamedTuple):
    """A table that a home has seen, as marks and keyed hashes.

    rows: uint64 (n,); the marks of the rows, in their order.
    ids: uint64 (n,); the marks that follow from the ids; empty for a table without ids.
    cells, names: uint32 (F, n) and uint64 (F,); see :func:`hash_cells`.
    """

    rows: WordArray
    ids: WordArray
    cells: CellWords
    names: WordArray

    def find(self, table: KnownTable) -> IntArray:
        """Return the index in this table of each row of ``table``; -1 if it is absent."""
        shorter_length = min(len(self.cells.T), len(table.cells.T))
        if len(self.ids) and np.array_equal(self.ids, table.ids):
            return np.arange(shorter_length)
        if len(self.ids) and len(table.ids):
            positions = positions_of(table.ids, self.ids)
            if 2 * np.count_nonzero(positions >= 0) >= shorter_length:
                return positions
        if len(self.cells.T) == len(table.cells.T):
            equal = [c[:_SAMPLE] for c in table.cells if self.has_column(c)]
            if sum(map(_entropy_bits, equal)) >= _BITS:
                return np.arange(shorter_length)
        positions = _match_rows(*self._row_words(table))
        is_same = 2 * np.count_nonzero(positions >= 0) >= shorter_length
        return positions if is_same else np.full_like(positions, -1)

    def has_column(self, column: CellWords) -> bool:
        """Return whether a column of this table has exactly these cells (n,)."""
        return any(np.array_equal(column, cells) for cells in self.cells)

    def _row_words(self, table: KnownTable) -> tuple[WordArray, WordArray]:
        """Return hashes of the rows of both tables, over their common columns."""
        samples, other_samples = ([*map(_sample_runs, t.cells)] for t in (self, table))
        fewest = min(len(self.rows), len(table.rows), _SAMPLE) / 8
        common = np.array(
            [[_count_common_runs(a, b) for b in other_samples] for a in samples]
        )
        pairs = [
            (int(n.argmax()), j) for j, n in enumerate(common.T) if max(n) > fewest
        ]
        if not pairs:  # reordered rows have no runs in common: compare names
            equal = self.names[:, None] == table.names
            pairs = [(int(i), int(j)) for i, j in zip(*np.nonzero(equal), strict=True)]
        words = np.zeros(self.cells.shape[1], np.uint64)
        other_words = np.zeros(table.cells.shape[1], np.uint64)
        for i, j in pairs:
            words = mix(words + self.cells[i])
            other_words = mix(other_words + table.cells[j])
        return words, other_words


class KnownRows:
    """All rows that a home has seen in sessions."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tables: dict[str, KnownTable] = {}
        self._n_same, self.same = 0, (np.empty(0, np.uint64),) * 2

    def load_replaced_marks(self) -> tuple[WordArray, WordArray]:
        """Read replaced marks (m,), and the current marks (m,) of the same rows.

        The result is also stored as the attribute ``same``.
        """
        names = list(self._store.numbers(_SAME))
        for name in names[self._n_same :]:
            _, arrays = codec.decode(self._store.read(_SAME, name))
            before, now = arrays["before"], arrays["now"]
            former, present = self.same
            present = replace_marks(present, before, now)
            self.same = np.append(former, before), np.append(present, now)
        self._n_same = len(names)
        return self.same

    def identify(self, ids: WordArray, cells: CellWords, names: WordArray) -> WordArray:
        """Return the mark of each row (n,) of a table, and store new marks."""
        n_rows = cells.shape[1]
        rows = replace_marks(ids, *self.load_replaced_marks())
        if not len(ids):
            rows = np.frombuffer(secrets.token_bytes(8 * n_rows), "<u8")
        seen = KnownTable(rows.copy(), ids, cells, names)
        with self._store.locked():
            is_known, is_new = np.zeros(n_rows, bool), np.ones(len(cells), bool)
            are_ids_stored, tables = not len(ids), list(self._newest_first())
            same = np.empty((0, 2), np.uint64)
            for table in tables:
                if is_known.all() and are_ids_stored and not is_new.any():
                    break
                positions = table.find(seen)
                is_match = (positions >= 0) & ~is_known
                seen.rows[is_match] = table.rows[positions[is_match]]
                is_known |= is_match
                marks = np.where(positions >= 0, table.rows[positions], seen.rows)
                pairs = np.column_stack([marks, seen.rows])[marks != seen.rows]
                same = np.vstack([same, pairs])
                if np.array_equal(seen.rows, table.rows):
                    is_new &= [not table.has_column(column) for column in cells]
                    are_ids_stored |= np.array_equal(ids, table.ids)
            if not (is_known.all() and are_ids_stored) or is_new.any():
                self._save(seen._replace(cells=cells[is_new], names=names[is_new]))
            self._save_same(same, [seen, *tables])
        return seen.rows

    def _save_same(self, pairs: WordArray, tables: Sequence[KnownTable]) -> None:
        """Store pairs (n, 2) of marks: an earlier and the current mark of the same row.

        Two marks in one table belong to different rows, so pairs that would give both
        rows the same mark are dropped.
        """
        _, first = np.unique(pairs[:, 0], return_index=True)
        before, now = pairs[first].T
        for table in tables if len(before) else ():
            marks = replace_marks(np.unique(table.rows), before, now)
            values, counts = np.unique(marks, return_counts=True)
            is_one = ~np.isin(now, values[counts > 1])
            before, now = before[is_one], now[is_one]
        if len(before):
            content = codec.encode({}, {"before": before, "now": now})
            self._store.write(_SAME, _digest(before, now).hex(), content)

    def _newest_first(self) -> Iterator[KnownTable]:
        """Yield all tables, newest first; tables of the same rows are joined into one."""
        merged, same = dict[bytes, KnownTable](), self.load_replaced_marks()
        for name in self._store.numbers(_KIND):
            if name not in self._tables:
                _, arrays = codec.decode(self._store.read(_KIND, name))
                arrays["cells"] = arrays["cells"].view(np.uint32)
                self._tables[name] = KnownTable(**arrays)
            table = self._tables[name]
            table = table._replace(rows=replace_marks(table.rows, *same))
            earlier = merged.pop(digest := _digest(table.rows, table.ids), None)
            if earlier is not None:
                columns = np.vstack([earlier.cells, table.cells])
                names = np.concatenate([earlier.names, table.names])
                table = table._replace(cells=columns, names=names)
            merged[digest] = table
        yield from reversed(merged.values())

    def _save(self, table: KnownTable) -> None:
        parts = {**table._asdict(), "cells": table.cells.view(np.int32)}
        name = _digest(*map(np.ascontiguousarray, table)).hex()
        self._store.write(_KIND, name, codec.encode({}, parts))


def _digest(*arrays: np.ndarray) -> bytes:
    digest = blake2b(digest_size=16)
    for array in arrays:
        digest.update(len(array).to_bytes(8, "little") + array.tobytes())
    return digest.digest()


def replace_marks(marks: WordArray, before: WordArray, now: WordArray) -> WordArray:
    """Return marks (n,) after replacing those in ``before`` (m,) by those in ``now``."""
    positions = positions_of(marks, before)
    is_other = positions >= 0
    return np.where(is_other, now[positions], marks) if is_other.any() else marks


def positions_of(marks: WordArray, table: WordArray) -> IntArray:
    """Return the index of each mark (n,) in a table of marks; -1 if absent."""
    if not len(table):
        return np.full(len(marks), -1)
    order = np.argsort(table)
    positions = np.searchsorted(table[order], marks)
    candidates = order[np.minimum(positions, len(table) - 1)]
    return np.where(table[candidates] == marks, candidates, -1)


def marks_not_in(marks: WordArray, table: WordArray) -> WordArray:
    """Return the marks (n,) that are not in a table of marks, sorted."""
    marks, table = np.sort(marks), np.sort(table)  # a search in order is much faster
    if not len(table):
        return marks
    candidates = table.take(np.searchsorted(table, marks), mode="clip")
    missing: WordArray = marks[candidates != marks]
    return missing


def _entropy_bits(column: CellWords) -> float:
    _, counts = np.unique(column, return_counts=True)
    return float((counts * np.log2(len(column) / counts)).sum())


def _find_runs(
    words: WordArray, limit: np.uint64
) -> Iterator[tuple[int, WordArray, IntArray]]:
    """Yield the length, hashes and positions of unique runs of words, sorted by the hashes.

    Only two lengths are used: the shortest ones for which most runs are unique.

    limit: the largest hash that is considered.
    """
    n_found, words = 0, mix(words)
    for length in _RUNS:
        if n_found == 2:
            return
        begins = np.arange(max(len(words) - length + 1, 0))
        runs = hash_stretches(words, begins, begins + length)
        rows = np.flatnonzero(runs <= limit)
        values, first, counts = np.unique(
            runs[rows], return_index=True, return_counts=True
        )
        once = counts == 1
        if np.count_nonzero(once) >= max(_LEAST_UNIQUE * len(rows), 1):
            yield length, values[once], rows[first[once]]
            n_found += 1


def _sample_runs(column: CellWords) -> dict[int, WordArray]:
    """Return the hashes of a column's unique runs, by length; a sample if it is long."""
    limit = np.uint64((2**64 - 1) // max(1, len(column) // _SAMPLE))
    runs = _find_runs(column.astype(np.uint64), limit)
    return {length: values for length, values, _ in runs}


def _count_common_runs(a: dict[int, WordArray], b: dict[int, WordArray]) -> int:
    """Return the number of unique runs that two columns share; 0 if there are too few."""
    lengths = a.keys() & b.keys()
    return max((len(_intersect(a[n], b[n])[0]) for n in lengths), default=0)


def _match_rows(words: WordArray, other_words: WordArray) -> IntArray:
    """Return the index in ``words`` of each row of ``other_words``; -1 if unknown.

    Runs that are unique in both tables are matched first, then other equal rows in
    order.
    """
    positions = np.full(len(other_words), -1)
    limit = np.uint64(2**64 - 1)
    runs = {length: (values, rows) for length, values, rows in _find_runs(words, limit)}
    for length, values, rows in _find_runs(other_words, limit):
        if length in runs:
            i, j = _intersect(runs[length][0], values)
            for step in range(length):
                positions[rows[j] + step] = runs[length][1][i] + step
    if not (positions >= 0).any():
        return positions
    unused = np.setdiff1d(np.arange(len(words)), positions)
    unmatched = np.flatnonzero(positions < 0)
    equal = positions_of(
        make_distinct(other_words[unmatched]), make_distinct(words[unused])
    )
    positions[unmatched[equal >= 0]] = unused[equal[equal >= 0]]
    return positions


def _intersect(a: WordArray, b: WordArray) -> tuple[IntArray, IntArray]:
    """Return the positions in a and b of their common words; empty if these are few."""
    _, i, j = np.intersect1d(a, b, assume_unique=True, return_indices=True)
    is_enough = len(i) >= _COMMON * min(len(a), len(b))
    return (i, j) if is_enough else (i[:0], j[:0])


def make_distinct(words: WordArray) -> WordArray:
    """Return distinct words: of equal words, all but the first are numbered and hashed."""
    if len(np.unique(words)) == len(words):
        return words
    order = np.argsort(words, kind="stable")
    ordered = words[order]
    number = np.arange(len(words)) - np.searchsorted(ordered, ordered)
    distinct = np.empty_like(words)
    distinct[order] = np.where(number, mix(ordered + number.astype(np.uint64)), ordered)
    return distinct
