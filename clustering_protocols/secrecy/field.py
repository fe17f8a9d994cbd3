"""Arithmetic in F_p, p = 2^61 - 1, on arrays of unsigned 64-bit words.

A residue is a word in [0, p). Since 2^61 = 1 (mod p), the bits above the 61st are added
to those below (a *fold*), and no division is needed. Products are made of 31-bit limbs:
x = x1 2^31 + x0, so that every partial product fits a word and a vector unit can do four
or eight of them at once; a 128-bit product per element took three times as long.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clustering_protocols.numerics.compilation import compile_kernel, inline_helper
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.secrecy.prime import P

_W = np.uint64
_P: Final = _W(P)
_BITS: Final = _W(61)
_LIMB: Final = _W(31)
_LOW_LIMB: Final = _W(2**31 - 1)
_LOW_30: Final = _W(2**30 - 1)
_LOW_29: Final = _W(2**29 - 1)
_30: Final = _W(30)
_29: Final = _W(29)
_32: Final = _W(32)
_1: Final = _W(1)

BLOCK: Final = 1 << 16  # words: half a megabyte, which a second-level cache holds


@inline_helper
def fold(x: np.uint64) -> np.uint64:
    """Return a word equal to x mod p and below p + 9."""
    return (x & _P) + (x >> _BITS)


@inline_helper
def reduce_word(x: np.uint64) -> np.uint64:
    """Return x mod p, for any word x."""
    y = (x & _P) + (x >> _BITS)
    return y - _P if y >= _P else y


@inline_helper
def squares(a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64) -> np.uint64:
    """Return a word equal to a² + b² + c² + d² mod p, for a … d ≤ p.

    x² = x0² + 2^32 x0 x1 + 2^62 x1², and 2^62 = 2 (mod p). Four terms are the most that
    Σ x0² may have in one word. The sum is below 6.1 · 2^61: a folded word can be added.
    """
    a0, b0, c0, d0 = a & _LOW_LIMB, b & _LOW_LIMB, c & _LOW_LIMB, d & _LOW_LIMB
    # masked, as the compiler does not know of p: the product of words that it knows to
    # be short is one instruction of a vector, of others several
    a1, b1 = (a >> _LIMB) & _LOW_LIMB, (b >> _LIMB) & _LOW_LIMB
    c1, d1 = (c >> _LIMB) & _LOW_LIMB, (d >> _LIMB) & _LOW_LIMB
    low = a0 * a0 + b0 * b0 + c0 * c0 + d0 * d0
    middle = a0 * a1 + b0 * b1 + c0 * c1 + d0 * d1
    high = a1 * a1 + b1 * b1 + c1 * c1 + d1 * d1
    return (
        (low & _P)
        + (low >> _BITS)
        + ((middle & _LOW_29) << _32)
        + (middle >> _29)
        + (high << _1)
    )


@compile_kernel
def add_multiples(
    total: WordArray,
    weights: WordArray,
    a: WordArray,
    b: WordArray,
    c: WordArray,
    d: WordArray,
) -> None:
    """Add w_0 a + w_1 b + w_2 c + w_3 d to total, in place; it may end unsettled.

    total: uint64 (size,); below p + 9 before and after.
    weights: uint64 (4,).
    a, b, c, d: uint64 (size,); settled, as are the weights: four terms are the most
        that one reduction takes.
    """
    low_weights, high_weights = weights & _LOW_LIMB, weights >> _LIMB
    p0, q0, r0, s0 = low_weights[0], low_weights[1], low_weights[2], low_weights[3]
    p1, q1, r1, s1 = high_weights[0], high_weights[1], high_weights[2], high_weights[3]
    for i in range(len(total)):
        a0, b0, c0, d0 = (
            a[i] & _LOW_LIMB,
            b[i] & _LOW_LIMB,
            c[i] & _LOW_LIMB,
            d[i] & _LOW_LIMB,
        )
        a1, b1, c1, d1 = a[i] >> _LIMB, b[i] >> _LIMB, c[i] >> _LIMB, d[i] >> _LIMB
        low = a0 * p0 + b0 * q0 + c0 * r0 + d0 * s0
        middle = (a0 * p1 + a1 * p0) + (b0 * q1 + b1 * q0)
        middle += (c0 * r1 + c1 * r0) + (d0 * s1 + d1 * s0)
        high = a1 * p1 + b1 * q1 + c1 * r1 + d1 * s1
        total[i] = fold(
            total[i]
            + (low & _P)
            + (low >> _BITS)
            + ((middle & _LOW_30) << _LIMB)
            + (middle >> _30)
            + (high << _1)
        )


@compile_kernel
def add(total: WordArray, part: WordArray) -> None:
    """Add part to total, in place; total may end unsettled, below p + 9."""
    for i in range(len(total)):
        total[i] = fold(total[i] + part[i])


@compile_kernel
def subtract(total: WordArray, part: WordArray) -> None:
    """Subtract part (settled) from total, in place; total may end unsettled."""
    for i in range(len(total)):
        total[i] = fold(total[i] + (_P - part[i]))


@compile_kernel
def to_real(total: WordArray, unit: float, out: FloatArray) -> None:
    """Write unit times the residue of every word."""
    for i in range(len(total)):
        out[i] = unit * np.float64(reduce_word(total[i]))


@compile_kernel
def settle(total: WordArray) -> None:
    """Bring every word into [0, p), in place."""
    for i in range(len(total)):
        total[i] = reduce_word(total[i])


@compile_kernel
def weighted_blocks(values: IntArray, weights: WordArray, out: WordArray) -> None:
    """Write Σ_i values[b·B + i] · weights[i] mod p for every block b of B = len(weights).

    values: int64 (size,); between -p and p.
    weights: uint64 (B,); settled.
    out: uint64 (⌈size / B⌉,).
    """
    length = len(weights)
    for block in range(len(out)):
        begin = block * length
        total = _W(0)
        for i in range(min(length, len(values) - begin)):
            value = values[begin + i]
            x = _W(value) if value >= 0 else _P - _W(-value)
            a0, a1 = x & _LOW_LIMB, x >> _LIMB
            b0, b1 = weights[i] & _LOW_LIMB, weights[i] >> _LIMB
            low, middle, high = a0 * b0, a0 * b1 + a1 * b0, a1 * b1
            total = fold(
                total
                + (low & _P)
                + (low >> _BITS)
                + ((middle & _LOW_30) << _LIMB)
                + (middle >> _30)
                + (high << _1)
            )
        out[block] = reduce_word(total)


def draw(stream: KeyedStream, size: int) -> WordArray:
    """Return ``size`` uniform residues: 61 bits of each word, p itself rejected."""
    drawn = stream.words(size)
    drawn &= _P
    while (rejected := np.flatnonzero(drawn == _P)).size:
        drawn[rejected] = stream.words(rejected.size) & _P
    return drawn
