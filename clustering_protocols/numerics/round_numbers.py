"""Round numbers: 1, 2 and 5 times the powers of ten.

Values that are disclosed in steps have round steps. A step that is computed from rows
says as much of them as all its digits do, however coarse it is.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clustering_protocols.records.arrays import FloatArray, IntArray

_COARSEST_STEP: Final = 1 / 20
_ROWS_HIDDEN: Final = 5
"""Published means are as coarse as if so many rows of their cluster lay one spread off."""
_LARGEST_POWER: Final = 300
_ROUND: Final = np.array(
    [
        float(f"{factor}e{power}")
        for power in range(-_LARGEST_POWER, _LARGEST_POWER + 1)
        for factor in (1, 2, 5)
    ]
)


def round_up(numbers: FloatArray) -> FloatArray:
    """Return the smallest round number that is no smaller than each; 0 of 0."""
    index = np.minimum(np.searchsorted(_ROUND, numbers), _ROUND.size - 1)
    return np.where(numbers > 0, _ROUND[index], 0.0)


def round_down(number: float) -> float:
    """Round a positive number to nine digits, then down to a round number.

    More digits differ between machines.
    """
    index = np.searchsorted(_ROUND, float(f"{number:.8e}"), side="right")
    return float(_ROUND[index - 1])


def steps_of(sizes: IntArray, spreads: FloatArray) -> FloatArray:
    """Return the steps (p, F) of means over so many rows (p,); 0 where no row differs.

    They are round numbers: other digits would say what sizes and spreads are.

    spreads: float64 (F,), of each feature.
    """
    shares = np.maximum(_COARSEST_STEP, _ROWS_HIDDEN / np.maximum(sizes, 1))
    return round_up(shares[:, None] * spreads)
