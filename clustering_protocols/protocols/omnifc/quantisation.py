"""From scaled numbers to residues: q binary digits after the point.

x̃ = round(2^q x) for x ≥ 0, a non-negative integer. A squared distance of such rows is
at most Σ_f (2^q R_f + 1)² for ranges R_f (rounding adds one) and must stay below p: then
its residue is the integer itself. It stands for 2^{2q} times the real squared distance
(the paper's equation 6 prints 2^{-q}, for plain distances 2^q is right).
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.records.arrays import FloatArray, WordArray
from clustering_protocols.secrecy.prime import P

MAX_BITS = 25  # of the fraction; more than the data's own digits are not worth a word


def largest_bits(ranges: FloatArray) -> int:
    """Return the largest q, at most 25, for ranges R_f (n_features,).

    Below zero where not even whole numbers fit.
    """
    return next((q for q in range(MAX_BITS, -1, -1) if _bound(ranges, q) < P), -1)


def bits_for(given: int | None, ranges: FloatArray) -> int:
    """Return the given q, or the largest; :class:`InvalidParameters` if it does not fit."""
    most = largest_bits(ranges)
    if most < 0:
        raise InvalidParameters(
            "The ranges of the features are too wide: squared distances do not fit a "
            "word. Scale the features, or choose another unit."
        )
    if given is not None and given > most:
        raise InvalidParameters(
            f"bits is {given}; the ranges of the features allow at most {most}."
        )
    return most if given is None else given


def _bound(ranges: FloatArray, bits: int) -> int:
    """Return Σ_f (2^q R_f + 1)² in whole numbers, rounded up."""
    return sum((ceil(Fraction(float(R)) * 2**bits) + 1) ** 2 for R in ranges)


def quantise(rows: FloatArray, bits: int) -> WordArray:
    """Return x̃ (n, n_features) of rows without negative numbers."""
    return np.rint(rows * 2.0**bits).astype(np.uint64)
