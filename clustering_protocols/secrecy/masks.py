"""Masks that hide each party's numbers and cancel in the sum over all parties.

The two members of every pair draw the same stream. The earlier slot adds this stream to
its numbers, and the later slot subtracts it, modulo 2^64 (pairwise masks after Bonawitz
et al., "Practical secure aggregation for privacy-preserving machine learning", 2017,
without its key exchange and dropout rounds).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import WordArray
from clustering_protocols.secrecy.prime import P

_CHUNK_WORDS: Final = (
    1 << 15
)  # words at a time; few enough to stay in the cache between drawing and adding


def add_stream(words: WordArray, stream: KeyedStream, sign: int = 1) -> None:
    """Add a stream to an array of any shape in place, modulo 2^64.

    words: uint64 array; contiguous.
    sign: 1 to add, -1 to subtract.
    """
    flat = words.reshape(-1)
    combine = np.add if sign > 0 else np.subtract
    mask = np.empty(min(_CHUNK_WORDS, flat.size), dtype=np.uint64)
    for begin in range(0, flat.size, _CHUNK_WORDS):
        piece = flat[begin : begin + _CHUNK_WORDS]
        stream.fill(mask[: piece.size])
        combine(piece, mask[: piece.size], out=piece)


def add_tagged_shares(parts: Iterable[WordArray]) -> WordArray:
    """Return the sum of shares modulo 2^64; the tags at the end are added modulo p."""
    shares = list(parts)
    total = add_all(shares)
    total[-1] = sum(int(share[-1]) for share in shares) % P
    return total


def add_all(parts: Iterable[WordArray]) -> WordArray:
    """Return the sum of arrays of equal shape modulo 2^64, as a new array."""
    first, *further = parts
    total = np.array(first, dtype=np.uint64)
    for part in further:
        np.add(total, part, out=total)
    return total
