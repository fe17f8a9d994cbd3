"""Section 12, llf, scale: the units in which rows count, and what follows of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .order import View

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scale:
    """Section 12, llf, scale: a, b, L, B, Q, e, and the range of each column."""

    offset: Floats
    factor: Floats
    limit: Floats
    sums: Floats
    squares: Floats
    step: Floats
    low: Floats
    high: Floats

    def __call__(self, X: Floats) -> Floats:
        """Section 12, llf, scale: rows in scaled units."""
        return (X - self.offset) * self.factor

    def farthest(self, V: Floats) -> float:
        """Section 12, llf, around the means: d."""
        return float(np.square(self.limit + np.abs(V).max(axis=0)).sum())

    def holds(self, X: Floats) -> bool:
        """Section 12, llf, scale: whether rows lie within the ranges."""
        return bool(((self.low <= X) & (self.high >= X)).all())


def find_scale(view: View, params: Mapping[str, Any]) -> Scale:
    """Section 12, llf, scale: that of a session."""
    session = view.session
    low, high = session.ranges()
    n = float(session.n_rows(view.group("column")))
    ones = np.ones_like(low)
    if params["scaling"] == "standard":
        pooled = view.recall("moments")
        deviation = np.where(pooled.deviation > 0, pooled.deviation, 1.0)
        largest = 1.001 * np.sqrt(n) * ones
        most = 1.001 * n * ones
        both = (pooled.mean, 1.0 / deviation)
        return Scale(*both, largest, most, most, ones, low, high)
    width = np.where(high > low, high - low, 1.0)
    if params["scaling"] == "minmax":
        return Scale(low, 1.0 / width, ones, n * ones, n * ones, ones, low, high)
    largest = np.maximum(np.abs(low), np.abs(high))
    largest = np.where(largest > 0, largest, 1.0)
    bounds = (largest, n * largest, n * np.square(largest))
    return Scale(0.0 * ones, ones, *bounds, width, low, high)
