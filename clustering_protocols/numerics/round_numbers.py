"""Round numbers: 1, 2 and 5 times the powers of ten.

Values are disclosed in round steps, because any other step size, however coarse, would
reveal by its digits something about the rows from which it was computed.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clustering_protocols.records.arrays import FloatArray, IntArray

_COARSEST_STEP: Final = 1 / 20
_ROWS_HIDDEN: Final = 5
"""Published means are rounded as if five rows could move by one standard deviation."""
_LARGEST_POWER: Final = 300
_ROUND: Final = np.array(
    [
        float(f"{factor}e{power}")
        for power in range(-_LARGEST_POWER, _LARGEST_POWER + 1)
        for factor in (1, 2, 5)
    ]
)


def round_up(numbers: FloatArray) -> FloatArray:
    """Return the smallest round number that is not below each number; 0 stays 0."""
    index = np.minimum(np.searchsorted(_ROUND, numbers), _ROUND.size - 1)
    return np.where(numbers > 0, _ROUND[index], 0.0)


def round_down(number: float) -> float:
    """Return the largest round number that does not exceed a positive number.

    The number is first rounded to nine digits, because further digits may differ
    between machines.
    """
    index = np.searchsorted(_ROUND, float(f"{number:.8e}"), side="right")
    return float(_ROUND[index - 1])


def round_rows(n_rows: IntArray) -> IntArray:
    """Return numbers of rows, int64, rounded to multiples of five.

    A number from 1 to 7 becomes five, and 0 stays 0.
    """
    fives = np.rint(n_rows / _ROWS_HIDDEN).astype(np.int64) * _ROWS_HIDDEN
    return np.where(n_rows > 0, np.maximum(fives, _ROWS_HIDDEN), 0)


def rounding_steps(sizes: IntArray, spreads: FloatArray) -> FloatArray:
    """Return the round step (p, F) of each published mean; 0 where the spread is 0.

    sizes: int64 (p,); the number of rows behind each mean.
    spreads: float64 (F,); the standard deviation of each feature.
    """
    shares = np.maximum(_COARSEST_STEP, _ROWS_HIDDEN / np.maximum(sizes, 1))
    return round_up(shares[:, None] * spreads)
