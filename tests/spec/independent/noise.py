"""Section 12: pqmds, noise: whole numbers that hide a person, and their scales."""

from __future__ import annotations

from math import exp, inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .derivations import Stream

Whole = NDArray[np.int64]
_STEPS: Final = 1024
_LEAST: Final = 51.2
_ORDERS: Final = 1.0 + 2.0 ** np.arange(-10, 20, 0.125)
_HALVES: Final = 60


def exponential(stream: Stream, m: int) -> NDArray[np.float64]:
    """Section 12, pqmds, a way to draw: exponential numbers."""
    exponents = np.frexp(stream.words(m).astype(np.float64))[1]
    digits = (1.0 + stream.uniform(m)) / 2.0
    return np.maximum(64 - exponents, 0) * np.log(2.0) - np.log(digits)


def laplace(stream: Stream, scale: float, m: int) -> Whole:
    """Section 12, pqmds, a way to draw: numbers of laplace."""
    whole = np.floor(scale * exponential(stream, 2 * m)).astype(np.int64)
    return whole[:m] - whole[m:]


def gaussian(stream: Stream, scale: float, m: int) -> Whole:
    """Section 12, pqmds, a way to draw: numbers of gaussian."""
    wide = np.floor(scale) + 1.0
    kept: Whole = np.empty(0, np.int64)
    while len(kept) < m:
        drawn = laplace(stream, wide, m)
        excess = np.square(np.abs(drawn) - scale**2 / wide) / (2.0 * scale**2)
        kept = np.append(kept, drawn[exponential(stream, m) > excess])
    return kept[:m]


def laplace_scale(epsilon: float) -> float:
    """Section 12, pqmds, noise: b of the share of one code."""
    return max(_LEAST, _STEPS / epsilon)


def gaussian_scale(epsilon: float, delta: float) -> float:
    """Section 12, pqmds, noise: σ of the share of one code, halving what is too wide."""
    low, high = _LEAST, 1e15
    if _spent(low, epsilon) <= delta:
        return low
    for _ in range(_HALVES):
        middle = (low * high) ** 0.5
        low, high = (
            (low, middle) if _spent(middle, epsilon) <= delta else (middle, high)
        )
    return high


def _spent(scale: float, epsilon: float) -> float:
    """Section 12, pqmds, noise: the least δ over some orders α."""
    rho = _STEPS**2 / (2.0 * scale**2)
    least = inf
    for order in _ORDERS.tolist():
        power = (order - 1.0) * (order * rho - epsilon)
        if power < 700.0:
            rest = (1.0 - 1.0 / order) ** order / (order - 1.0)
            least = min(least, exp(power) * rest)
    return least
