"""Keyed words of ids and cells, by which a home knows rows again.

A word of an id is AES of a keyed hash. One of a cell is half of a keyed hash of its
value as the table has it, of the same value in whichever column the same: names say
nothing. Who has not the key learns which cells are alike, and no value.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from clustering_protocols.numerics.data_source import DataSource, original_of
from clustering_protocols.numerics.randomness import derive_key
from clustering_protocols.records.arrays import IntArray, WordArray
from party_sdk.home.store import store_of

if TYPE_CHECKING:
    import pyarrow as pa

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
