"""Whole-numbered noise for differential privacy, from a keyed stream.

Whole numbers, because the holes of floating-point noise tell what it was added to
(I. Mironov, "On significance of the least significant bits for differential privacy",
CCS 2012). From a keyed stream, because a draw that is repeated must be the same noise:
two draws over the same numbers would be two releases.
"""

from __future__ import annotations

import numpy as np

from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import FloatArray, IntArray


def exponential(stream: KeyedStream, size: int) -> FloatArray:
    """Return standard exponential numbers (size,), 52 bits at every magnitude.

    -log of a uniform number of which one word gives the exponent and another the digits:
    its relative rounding is the same in the tail, down to 2^-64, as in the middle.
    """
    exponents = np.frexp(stream.words(size).astype(np.float64))[1]
    zeros = np.maximum(64 - exponents, 0)  # the largest words round up to 2^64
    digits = (1.0 + stream.uniform(size)) / 2.0
    drawn: FloatArray = zeros * np.log(2.0) - np.log(digits)
    return drawn


def discrete_laplace(stream: KeyedStream, scale: float, size: int) -> IntArray:
    """Return whole numbers x (size,), each with a probability ∝ exp(-|x| / scale).

    The whole part of an exponential number is geometric; the difference of two geometric
    numbers has this distribution.
    """
    geometric = np.floor(scale * exponential(stream, 2 * size)).astype(np.int64)
    return geometric[:size] - geometric[size:]


def discrete_gaussian(stream: KeyedStream, scale: float, size: int) -> IntArray:
    """Return whole numbers x (size,), each with a probability ∝ exp(-x² / (2 scale²)).

    Discrete Laplace numbers, of which some are kept (C. Canonne, G. Kamath, T. Steinke,
    "The discrete Gaussian for differential privacy", 2020, algorithm 3).
    """
    wide = np.floor(scale) + 1.0
    kept: IntArray = np.empty(0, dtype=np.int64)
    while len(kept) < size:
        drawn = discrete_laplace(stream, wide, size)
        excess = (np.abs(drawn) - scale**2 / wide) ** 2 / (2.0 * scale**2)
        kept = np.append(kept, drawn[exponential(stream, size) > excess])
    return kept[:size]
