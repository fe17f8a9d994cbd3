"""Hashes of texts, in one compiled pass.

A hash mixes words with the last step of splitmix64: of different words it is different,
and the order of hashes says nothing of the words.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clustering_protocols.numerics.compilation import compile_once, inline_helper
from clustering_protocols.records.arrays import IntArray, WordArray

_SHIFTS: Final = (np.uint64(30), np.uint64(27), np.uint64(31))
_FACTORS: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_ZERO: Final = np.uint64(0)


@inline_helper
def _mix(word: np.uint64) -> np.uint64:
    word = (word ^ (word >> _SHIFTS[0])) * _FACTORS[0]
    word = (word ^ (word >> _SHIFTS[1])) * _FACTORS[1]
    return word ^ (word >> _SHIFTS[2])


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
