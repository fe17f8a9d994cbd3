"""The grid of quartiles: equal parts of each field's range, and what lies beyond.

A histogram of these parts is what parties add up. A value *cut to the grid* is the middle
of its part, and of whole numbers that have a part each, the number itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from clustering_protocols.records.arrays import FloatArray, IntArray

PARTS: Final = 64
SIZE: Final = PARTS + 2
"""Of a histogram: what lies below comes first, what lies above last."""

_SPREADS: Final = 4.0
_DIGITS: Final = 9
"""Significant digits of a grid's ends: all members compute the same."""


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Where the parts of each field begin, and how wide they are.

    low, width: float64 (m,); a width of 0 is of a field with one value alone.
    whole: bool (m,).
    """

    low: FloatArray
    width: FloatArray
    whole: np.ndarray[tuple[int], np.dtype[np.bool_]]

    @classmethod
    def of(
        cls,
        mean: FloatArray,
        spread: FloatArray,
        bounds: tuple[FloatArray, FloatArray],
        whole: np.ndarray[tuple[int], np.dtype[np.bool_]],
    ) -> Grid:
        """Return the grid of fields with mean and spread (m,) over all lines.

        It reaches four spreads to both sides, as far as the dictionary's bounds.
        """
        low = np.maximum(_round_digits(mean - _SPREADS * spread), bounds[0])
        high = np.minimum(_round_digits(mean + _SPREADS * spread), bounds[1])
        low, high = np.where(whole, [np.floor(low), np.ceil(high)], [low, high])
        width = np.maximum(high - low, 0.0) / PARTS
        steps = np.maximum(np.ceil((high - low + 1.0) / PARTS), 1.0)
        return cls(low=low, width=np.where(whole, steps, width), whole=whole)

    def part(self, values: FloatArray) -> IntArray:
        """Return the number of the part of each value (n, m), from 0 to SIZE - 1.

        A value that is NaN is in the first.
        """
        several = self.width > 0
        position = np.floor((values - self.low) / np.where(several, self.width, 1.0))
        last = (values == self.low + PARTS * self.width) & ~self.whole  # the upper end
        position = np.where(last, PARTS - 1, position)
        part = np.clip(np.where(several, position, 0), -1, PARTS) + 1
        found: IntArray = np.nan_to_num(part).astype(np.int64)
        return found

    def middles(self, field: int) -> FloatArray:
        """Return the value (SIZE,) for which each part stands; NaN beyond the ends."""
        width = self.width[field]
        within = (width - 1.0) / 2.0 if self.whole[field] else width / 2.0
        found: FloatArray = (
            self.low[field] + width * np.arange(-1.0, PARTS + 1.0) + within
        )
        found[[0, -1]] = np.nan
        return found


def _round_digits(values: FloatArray) -> FloatArray:
    scale = 10.0 ** (
        _DIGITS - 1 - np.floor(np.log10(np.maximum(np.abs(values), 1e-300)))
    )
    return np.rint(values * scale) / scale


def quantile(counts: IntArray, middles: FloatArray, q: float) -> float:
    """Return the q-quantile of values cut to a grid, as NumPy's default computes it.

    counts: int64 (SIZE,); how many values each part has; at least one in all.
    middles: float64 (SIZE,).

    Returns float: NaN where the grid does not reach it.
    """
    ends, place = np.cumsum(counts), (int(counts.sum()) - 1) * q
    below, above = (
        middles[np.searchsorted(ends, rank, side="right")]
        for rank in (np.floor(place), np.ceil(place))
    )
    return float(below + (above - below) * (place - np.floor(place)))
