"""Real numbers as elements of Z_2^64, so that sums are exact and can be masked.

A number x is encoded as round(x · 2^bits) mod 2^64. The number of fractional bits
follows from a bound on the sum that all parties know, so that no sum wraps around. A
number beyond the bound raises an error before anything is sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.records.arrays import FloatArray, WordArray

RING_BITS: Final = 59
"""Bits of the largest sum in the ring: two such sums differ by less than 2^61 - 1.

A tag modulo that prime (:mod:`.tags`) then tells any two sums apart.
"""

EXACT_BITS: Final = 52
"""Bits of the largest sum whose float64 partial sums are exact, whatever their order."""

_MOST_BITS: Final = 900  # so that 2^f and products with it stay within float64
_ROUNDINGS: Final = (
    2.0**20
)  # number of units by which rounding can lift a sum above its bound


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FixedPoint:
    """The fixed-point encoding of one array.

    bound: float64 array; largest absolute value of the sum for each item; broadcast to
        the shape.
    unit: float64 array; 2^f for f fractional bits of each item.
    """

    bound: FloatArray
    unit: FloatArray

    @classmethod
    def of(cls, bound: FloatArray | float, total_bits: int = RING_BITS) -> FixedPoint:
        """Return the finest encoding in which sums stay within a bound.

        bound: largest absolute value of the sum over all parties, > 0, for each item.
        total_bits: ``RING_BITS`` if each party rounds once. ``EXACT_BITS`` if each row
            is rounded and rows are summed in float64: then the sum does not depend on
            how rows are divided into batches and among parties.
        """
        bound = np.asarray(bound, dtype=np.float64)
        exponent = np.frexp(bound)[1]  # bound < 2^exponent
        bits = np.minimum(total_bits - exponent, _MOST_BITS)
        return cls(bound=bound, unit=2.0 ** np.asarray(bits, dtype=np.float64))

    @classmethod
    def concatenate(cls, *parts: FixedPoint) -> FixedPoint:
        """Return the encoding of the items of all parts, one part after the other."""
        return cls(
            bound=np.concatenate([np.ravel(part.bound) for part in parts]),
            unit=np.concatenate([np.ravel(part.unit) for part in parts]),
        )

    def encode(self, x: FloatArray) -> WordArray:
        """Return the ring elements of real numbers; raise as :meth:`encode_units` does."""
        return self.encode_units(np.rint(x * self.unit))

    def encode_units(self, units: FloatArray) -> WordArray:
        """Return the ring elements of integers that count multiples of 1 / ``unit``.

        Raises GuardRefused if a number exceeds the bound of the sum. The message does
        not contain the number, which is private.
        """
        fits = np.abs(units) <= self.bound * self.unit + _ROUNDINGS
        excess = int(np.count_nonzero(~fits))
        if excess:
            raise GuardRefused(
                f"{excess} numbers exceed the bound that the parties agreed on."
            )
        return units.astype(np.int64).view(np.uint64)

    def fits(self, words: WordArray) -> bool:
        """Return whether sums are within bounds, which is unlikely for random words."""
        largest = self.bound * self.unit + _ROUNDINGS
        return bool((np.abs(words.view(np.int64).astype(np.float64)) <= largest).all())

    def decode(self, words: WordArray) -> FloatArray:
        """Return the real numbers that ring elements represent, read as signed."""
        return words.view(np.int64) / self.unit
