"""Hashes of rows and texts, and the least hashes of columns, in one compiled pass each.

A hash mixes words with the last step of splitmix64: of different words it is different,
and the order of hashes says nothing of the words.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clustering_protocols.numerics.compilation import (
    compile_kernel,
    compile_once,
    inline_helper,
)
from clustering_protocols.records.arrays import IntArray, WordArray

_SHIFTS: Final = (np.uint64(30), np.uint64(27), np.uint64(31))
_FACTORS: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))

_SIGN: Final = np.uint64(1 << 63)
"""Of zero, which readers write with it or without."""

_INFINITE: Final = np.uint64(0x7FF << 52)
_NO_VALUE: Final = np.uint64(0xFFF << 51)
"""The one form of NaN; readers write any bits beyond those of infinity."""

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_BYTE, _LARGEST = np.uint64(255), np.uint64(2**64 - 1)


@inline_helper
def _mix(word: np.uint64) -> np.uint64:
    word = (word ^ (word >> _SHIFTS[0])) * _FACTORS[0]
    word = (word ^ (word >> _SHIFTS[1])) * _FACTORS[1]
    return word ^ (word >> _SHIFTS[2])


@compile_kernel
def _count_least(least: WordArray, sketch: int, size: int, found: np.uint64) -> int:
    """Count a hash among the least ones (s, 2, m) of a sketch of so many.

    It is no larger than the last one where all m are in use. Returns the new size.
    """
    low, left = 0, size
    while left > 0:  # halves without a branch, which nobody could foresee
        half = (left + 1) // 2
        low += half * (least[sketch, 0, low + half - 1] < found)
        left -= half
    if low < size and least[sketch, 0, low] == found:
        least[sketch, 1, low] += _ONE
        return size
    size = min(size + 1, least.shape[2])
    for place in range(size - 1, low, -1):
        least[sketch, 0, place] = least[sketch, 0, place - 1]
        least[sketch, 1, place] = least[sketch, 1, place - 1]
    least[sketch, 0, low], least[sketch, 1, low] = found, _ONE
    return size


@compile_kernel
def _limit(least: WordArray, sketch: int, size: int) -> np.uint64:
    """Return the largest hash that is still to be counted in a sketch."""
    return least[sketch, 0, -1] if size == least.shape[2] else _LARGEST


@compile_once(3)
def hash_rows(
    rows: WordArray,
    salts: WordArray,
    sketched: IntArray,
    least: WordArray,
    sizes: IntArray,
    totals: WordArray,
) -> None:
    """Add up the hashes of each row's cells, and gather the least ones of each column.

    rows: (n, F); the bits of float64 numbers; NaN is no value.
    salts: (F,); of each column.
    sketched: int64 (F,); the sketch of each column, -1 for none.
    least: (s, 2, m); the least hashes of values of each sketch, and how often each
        occurs; changed in place, as are the next two.
    sizes: int64 (s,); so many of them are in use.
    totals: (n,); what is added to.
    """
    limits = np.zeros_like(salts)
    for column in range(len(salts)):
        sketch = sketched[column]
        if sketch >= 0:
            limits[column] = _limit(least, sketch, sizes[sketch])
    for row in range(len(rows)):
        total = _ZERO
        for column in range(len(salts)):
            word = rows[row, column]
            if word == _SIGN:
                word = _ZERO
            has_value = (word & ~_SIGN) <= _INFINITE
            if not has_value:
                word = _NO_VALUE
            found = _mix(word ^ salts[column])
            total += found
            sketch = sketched[column]
            if found <= limits[column] and has_value and sketch >= 0:
                sizes[sketch] = _count_least(least, sketch, sizes[sketch], found)
                limits[column] = _limit(least, sketch, sizes[sketch])
        totals[row] += total


@compile_once(3)
def hash_texts(
    content: np.ndarray[tuple[int], np.dtype[np.uint8]],
    ends: IntArray,
    salts: WordArray,
    totals: WordArray,
) -> None:
    """Return the hashes of texts: of their lengths, and of each eight of their bytes.

    content: uint8; the texts in UTF-8, one behind the other.
    ends: int64 (n + 1,); where each begins, and the last one ends.
    salts: of the length, and of the first eight bytes, the next ones and so on.
    totals: (n,); what the hashes are written to.
    """
    for row in range(len(ends) - 1):
        begin, end = ends[row], ends[row + 1]
        total = _mix(np.uint64(end - begin) ^ salts[0])
        for number in range((end - begin + 7) // 8):
            low = begin + 8 * number
            word = _ZERO
            for place in range(min(8, end - low)):
                word |= np.uint64(content[low + place]) << np.uint64(8 * place)
            total += _mix(word ^ salts[1 + number])
        totals[row] = total


@compile_once(1)
def sort_words(words: WordArray) -> WordArray:
    """Return words (n,) sorted, byte by byte: a third of what comparisons take."""
    counts = np.zeros((8, 256), np.int64)
    for word in words:
        for byte in range(8):
            counts[byte, (word >> np.uint64(8 * byte)) & _BYTE] += 1
    found, other = words.copy(), np.empty_like(words)
    for byte in range(8):
        begin = 0
        for value in range(256):
            begin, counts[byte, value] = begin + counts[byte, value], begin
        for word in found:
            value = (word >> np.uint64(8 * byte)) & _BYTE
            other[counts[byte, value]] = word
            counts[byte, value] += 1
        found, other = other, found
    return found
