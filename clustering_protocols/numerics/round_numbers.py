"""Round numbers: 1, 2 and 5 times the powers of ten.

Values are disclosed in round steps, because the digits of any other step, however
coarse, would disclose something about the rows from which it was computed.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clustering_protocols.records.arrays import FloatArray, IntArray

_COARSEST_STEP: Final = 1 / 20
_ROWS_HIDDEN: Final = 5
"""Published means are as coarse as if five rows of their cluster moved by one spread."""
_LARGEST_POWER: Final = 300
_ROUND: Final = np.array(
    [
        float(f"{factor}e{power}")
        for power in range(-_LARGEST_POWER, _LARGEST_POWER + 1)
        for factor in (1, 2, 5)
    ]
)


def round_up(numbers: FloatArray) -> FloatArray:
    """Return each number rounded up to the next round number; 0 stays 0."""
    index = np.minimum(np.searchsorted(_ROUND, numbers), _ROUND.size - 1)
    return np.where(numbers > 0, _ROUND[index], 0.0)


def round_down(number: float) -> float:
    """Round a positive number down to a round number.

    It is first rounded to nine digits, because further digits differ between machines.
    """
    index = np.searchsorted(_ROUND, float(f"{number:.8e}"), side="right")
    return float(_ROUND[index - 1])


def steps_of(sizes: IntArray, spreads: FloatArray) -> FloatArray:
    """Return the round steps (p, F) in which means are published; 0 for a spread of 0.

    sizes: int64 (p,); the rows of each mean.
    spreads: float64 (F,); the standard deviation of each feature.
    """
    shares = np.maximum(_COARSEST_STEP, _ROWS_HIDDEN / np.maximum(sizes, 1))
    return round_up(shares[:, None] * spreads)
