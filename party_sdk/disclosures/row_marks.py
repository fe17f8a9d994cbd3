"""Keyed marks of the rows of a table, by which a home knows them again.

A row is known by its id and by its cells as they were read, before any preparation. A
table without ids of which other columns are read is known by what its columns have in
common with those of an earlier one.

A mark is a keyed hash of the words of a row, and AES of that: who has not the key learns
nothing, not even which rows are alike in two homes.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.randomness import derive_key
from clustering_protocols.records.arrays import IntArray, WordArray
from party_sdk.disclosures.column_sketches import Sketches
from party_sdk.home.files import read_private, wait_for_lock, write_private

if TYPE_CHECKING:
    import pyarrow as pa


KEY_FILE: Final = "rows.key"

CLUSTERED: Final = "clustered"
"""The kind of marks of clustered cells, where others are described; else of all cells."""

_BATCH: Final = 1 << 15
"""So many words are enciphered at once."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RowMarks:
    """Marks of the rows of one table, in their order.

    ids: uint64 (n,); of each row's id; None of a table without ids.
    cells: uint64 (n,); of each row's cells, whatever the order of the columns.
    clustered: uint64 (n,); of the cells that are clustered: a row that comes with more
        variables to describe is the same row.
    sketches: mapping of str to uint64 (2, m); of each column, by a mark of its name;
        see :mod:`party_sdk.disclosures.column_sketches`.
    """

    ids: WordArray | None = field(repr=False)
    cells: WordArray = field(repr=False)
    clustered: WordArray = field(repr=False)
    sketches: Mapping[str, WordArray] = field(repr=False)

    @property
    def rows(self) -> WordArray:
        """Return one mark of each row (n,): of its id; else of what is clustered."""
        return self.clustered if self.ids is None else self.ids

    @cached_property
    def by_kind(self) -> Mapping[str, WordArray]:
        """Return the marks by their kind, sorted."""
        # not above: numba is imported once there are rows
        from party_sdk.disclosures.hash_kernels import sort_words

        found = {"cells": sort_words(self.cells)}
        if self.clustered is not self.cells:
            found[CLUSTERED] = sort_words(self.clustered)
        return found if self.ids is None else {**found, "ids": sort_words(self.ids)}


def row_key(home: Path) -> bytes:
    """Return the 32 bytes under which a home marks rows; drawn at the first use."""
    path = home / KEY_FILE
    if path.exists():
        return read_private(path)
    with wait_for_lock(path.with_name("rows.lock")):
        if not path.exists():
            write_private(path, secrets.token_bytes(32))
    return read_private(path)


def marks_of(
    key: bytes, data: DataSource, clustered: DataSource | None = None
) -> RowMarks:
    """Return the marks of a table's rows, in their order.

    key: of :func:`row_key`.
    data: as it was read; NaN is no value.
    clustered: the columns of it that are clustered; all of them by default.
    """
    cells, sketches = _of_cells(key, data)
    return RowMarks(
        ids=_of_ids(key, data.ids),
        cells=cells,
        clustered=cells if clustered is None else _of_cells(key, clustered)[0],
        sketches=sketches,
    )


def _of_cells(key: bytes, data: DataSource) -> tuple[WordArray, dict[str, WordArray]]:
    """Return a number for each row (n,), and the sketch of each column.

    Numbers are equal for equal rows of the same columns, in any order of these.
    """
    salts = np.array([_salt(key, "cells", name) for name in data.columns])
    sketches = Sketches(key, data.columns, salts)
    found, begin = np.zeros(data.n_rows, dtype=np.uint64), 0
    for batch in data.batches():
        sketches.add(batch, found[begin : begin + len(batch)])
        begin += len(batch)
    return _encipher_words(key, "cells", found), sketches.found


def _of_ids(key: bytes, ids: Sequence[str] | None) -> WordArray | None:
    """Return a number for each id (n,)."""
    if ids is None:
        return None
    # not above: who joins or coordinates has no table yet, and starts without Arrow
    import pyarrow as pa

    from party_sdk.tables import ArrowIds

    if not isinstance(ids, ArrowIds):
        ids = ArrowIds([pa.array(ids, pa.large_string())])
    parts = [_of_texts(key, piece) for piece in ids.arrow.chunks]
    return _encipher_words(key, "ids", np.concatenate([np.empty(0, np.uint64), *parts]))


def _of_texts(key: bytes, texts: pa.Array) -> WordArray:
    """Return the hashes (b,) of texts."""
    from party_sdk.disclosures.hash_kernels import hash_texts

    content, ends = _bytes_of(texts)
    n_words = -(-int(np.diff(ends).max(initial=0)) // 8)
    names = ["length", *map(str, range(n_words))]
    salts = np.array([_salt(key, "ids", name) for name in names])
    found = np.empty(len(texts), dtype=np.uint64)
    hash_texts(content, ends, salts, found)
    return found


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
