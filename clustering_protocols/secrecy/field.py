"""Arithmetic in F_p, p = 2^61 - 1, on arrays of unsigned 64-bit words.

A residue is a word in [0, p). Since 2^61 = 1 (mod p), a word is reduced by adding the bits
above the 61st to those below (a *fold*), without division. Factors are split into 31-bit
limbs, x = x1 2^31 + x0, so that every partial product fits into a word, and a vector unit
can compute four or eight of them at once.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clustering_protocols.numerics.kernels import in_c
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.secrecy.prime import P

_P: Final = np.uint64(P)
_BITS: Final = np.uint64(61)
LIMB: Final = np.uint64(31)
LOW_LIMB: Final = np.uint64(2**31 - 1)
_LOW_30: Final = np.uint64(2**30 - 1)
_30: Final = np.uint64(30)
_1: Final = np.uint64(1)

BLOCK: Final = 1 << 16  # words: half a megabyte, which fits a second-level cache


def fold(x: WordArray) -> WordArray:
    """Return words that are congruent to x modulo p, and less than p + 9."""
    return (x & _P) + (x >> _BITS)


def reduce(x: WordArray) -> WordArray:
    """Return x mod p for arbitrary words x."""
    y = fold(x)
    return np.where(y >= _P, y - _P, y)


def add_limbs(
    total: WordArray, low: WordArray, middle: WordArray, high: WordArray
) -> WordArray:
    """Return total + low + 2^31 middle + 2^62 high, folded; 2^62 = 2 (mod p)."""
    carried = ((middle & _LOW_30) << LIMB) + (middle >> _30) + (high << _1)
    return fold(total + (low & _P) + (low >> _BITS) + carried)


@in_c("total")
def add_multiples(
    total: WordArray,
    weights: WordArray,
    a: WordArray,
    b: WordArray,
    c: WordArray,
    d: WordArray,
) -> None:
    """Add w_0 a + w_1 b + w_2 c + w_3 d to total in place, without reduction to [0, p).

    total: uint64 (size,); less than p + 9 before and after.
    weights: uint64 (4,); in [0, p).
    a, b, c, d: uint64 (size,); in [0, p). More than four terms would overflow before
        the reduction.
    """
    w0, w1 = weights & LOW_LIMB, weights >> LIMB
    parts = np.stack([a, b, c, d], axis=1)
    x0, x1 = parts & LOW_LIMB, parts >> LIMB
    total[:] = add_limbs(total, x0 @ w0, x0 @ w1 + x1 @ w0, x1 @ w1)


@in_c("total")
def add(total: WordArray, part: WordArray) -> None:
    """Add part to total in place, modulo p. The total may then be as large as p + 8."""
    total[:] = fold(total + part)


@in_c("total")
def subtract(total: WordArray, part: WordArray) -> None:
    """Subtract part, in [0, p), from total in place; total ends below p + 9."""
    total[:] = fold(total + (_P - part))


def write_as_real(total: WordArray, unit: float, out: FloatArray) -> None:
    """Write unit times the residue of each word of total to ``out``."""
    out[:] = unit * reduce(total).astype(np.float64)


@in_c("total")
def canonicalise(total: WordArray) -> None:
    """Reduce every word to [0, p) in place."""
    total[:] = reduce(total)


@in_c("out")
def weighted_blocks(values: IntArray, weights: WordArray, out: WordArray) -> None:
    """Write Σ_i values[b·B + i] · weights[i] mod p for each block b of length B.

    values: int64 (size,); between -p and p.
    weights: uint64 (B,); in [0, p).
    out: uint64 (⌈size / B⌉,).
    """
    length = len(weights)
    padded: IntArray = np.zeros(len(out) * length, dtype=np.int64)
    padded[: len(values)] = values
    words = padded.view(np.uint64)
    x = np.where(padded < 0, _P + words, words).reshape(len(out), length)
    total: WordArray = np.zeros(len(out), dtype=np.uint64)
    for a, b in zip(x.T, weights, strict=True):
        a0, a1, b0, b1 = a & LOW_LIMB, a >> LIMB, b & LOW_LIMB, b >> LIMB
        total = add_limbs(total, a0 * b0, a0 * b1 + a1 * b0, a1 * b1)
    out[:] = reduce(total)


def draw_residues(stream: KeyedStream, size: int) -> WordArray:
    """Draw ``size`` uniform residues, skipping words whose low 61 bits equal p."""
    residues = stream.words(size)
    residues &= _P
    while (rejected := np.flatnonzero(residues == _P)).size:
        residues[rejected] = stream.words(rejected.size) & _P
    return residues
