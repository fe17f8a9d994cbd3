"""How well two sources can be told apart: a lower bound of ε from what they give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from scipy import stats

from clustering_protocols.records.arrays import FloatArray

_QUANTILES: Final = np.linspace(0.0, 1.0, 41)

Statistic = Callable[[Any], float]


def least_epsilon(
    zeros: Sequence[Any], ones: Sequence[Any], statistics: Sequence[Statistic]
) -> float:
    """Return what ε two sources have at least, but for one time in a thousand.

    By the best event 'a statistic is at least t', or below t, that the first half of the
    samples offers, measured on the second half.
    """
    half = len(zeros) // 2
    values = [np.array([[f(x) for f in statistics] for x in s]) for s in (zeros, ones)]
    best = (-np.inf, 0, 0.0, 1)
    for column in range(len(statistics)):
        chosen = [each[:half, column] for each in values]
        for t in np.unique(np.quantile(np.concatenate(chosen), _QUANTILES)):
            for sign in (1, -1):
                first, second = (_count(each, float(t), sign) for each in chosen)
                found = max(_promise(first, second), _promise(second, first))
                best = max(best, (found, column, float(t), sign))
    _, column, t, sign = best
    counts = [_count(each[half:, column], t, sign) for each in values]
    ends = [
        stats.binomtest(k, len(zeros) - half).proportion_ci(1 - 5e-4) for k in counts
    ]
    return max(
        float(np.log(max(this.low, 1e-300) / other.high))
        for this, other in (ends, ends[::-1])
    )


def _count(values: FloatArray, t: float, sign: int) -> int:
    return int(np.count_nonzero(sign * values >= sign * t))


def _promise(often: int, rarely: int) -> float:
    """Return a careful guess at the logarithm of the ratio of two counts."""
    sure = max(often - 3.3 * np.sqrt(often), 1e-3)
    return float(np.log(sure / (rarely + 3.3 * np.sqrt(rarely) + 5.0)))
