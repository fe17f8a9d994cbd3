"""The scale that all parties share: a factor and a range for each feature, and q bits.

A number x ≥ 0 becomes the integer x̃ = round(2^q x). The squared distance of two such
rows is at most Σ_f (2^q R_f + 1)² for ranges R_f (rounding adds one). This distance
must stay below p, so that its residue mod p is the integer itself, which is 2^{2q}
times the real squared distance. (Equation 6 of the paper has 2^{-q}, which would be
right for distances, not their squares.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

import numpy as np

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.secrecy.prime import P
from clustering_protocols.terms.preparation import Ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The factor and the range of each feature, which are the same at every party.

    factor: float64 (n_features,).
    minimum, maximum: float64 (n_features,); in the original units of the features.
    unit_norm: whether each row is first divided by its length.
    """

    factor: FloatArray = field(repr=False)
    minimum: FloatArray = field(repr=False)
    maximum: FloatArray = field(repr=False)
    unit_norm: bool

    @property
    def ranges(self) -> FloatArray:
        """Return R_f, the range of each scaled feature."""
        return (self.maximum - self.minimum) * self.factor

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return the scaled rows (n, n_features), shifted so that the minimum is 0."""
        scaled = normalise_rows(X) if self.unit_norm else X
        return (scaled - self.minimum) * self.factor


def normalise_rows(X: FloatArray) -> FloatArray:
    """Divide each row by its Euclidean length; rows of zeros are left as they are."""
    length = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(length > 0, length, 1.0)


def factors(scaling: str, spread: FloatArray, ranges: FloatArray) -> FloatArray:
    """Return the factor of each feature, which is 1 for constant features.

    Features are not centred, because a shift changes no distance.

    spread: float64 (n_features,); standard deviations, or units of prepared columns.
    ranges: float64 (n_features,); maximum minus minimum.
    """
    divisor = {"standard": spread, "minmax": ranges}.get(scaling)
    if divisor is None:
        return np.ones_like(spread)
    return 1.0 / np.where(divisor > 0, divisor, 1.0)


def build_declared_scale(scaling: str, ranges: Ranges) -> Scale:
    """Return the scale for the ranges of the dictionary."""
    return Scale(
        factor=factors(scaling, np.ones_like(ranges.low), ranges.high - ranges.low),
        minimum=ranges.low,
        maximum=ranges.high,
        unit_norm=False,
    )


MAX_BITS = 25  # binary digits after the point: as precise as data usually are


def largest_bits(ranges: FloatArray) -> int:
    """Return the largest q, at most 25, for ranges R_f (n_features,).

    The result is -1 if not even q = 0 fits.
    """
    for q in range(MAX_BITS, -1, -1):
        # Σ_f (2^q R_f + 1)² in integers, rounded up
        if sum((ceil(Fraction(float(R)) * 2**q) + 1) ** 2 for R in ranges) < P:
            return q
    return -1


def bits_for(bits: int | None, ranges: FloatArray) -> int:
    """Return q: the given ``bits``, or the largest q that is possible if None.

    Raises InvalidParameters if q is too large for the ranges.
    """
    largest = largest_bits(ranges)
    if largest < 0:
        raise InvalidParameters(
            "The ranges of the features are too wide: squared distances do not fit a "
            "word. Scale the features, or choose another unit."
        )
    if bits is not None and bits > largest:
        raise InvalidParameters(
            f"bits is {bits}; the ranges of the features allow at most {largest}."
        )
    return largest if bits is None else bits
