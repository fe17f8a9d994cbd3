"""Section 12, llf, scale: the units in which rows count, and what follows of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .order import View
from .preparation import read_plan
from .session import Session

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scale:
    """Section 12, llf, scale: a, b, L, B, Q, e, and the range of each column.

    prepared: whether columns are prepared, so that rows may lie outside.
    """

    offset: Floats
    factor: Floats
    limit: Floats
    sums: Floats
    squares: Floats
    step: Floats
    low: Floats
    high: Floats
    prepared: bool

    def __call__(self, X: Floats) -> Floats:
        """Section 12, llf, scale: rows in scaled units."""
        return (X - self.offset) * self.factor

    def farthest(self, V: Floats) -> float:
        """Section 12, llf, around the means: d."""
        return float(np.square(self.limit + np.abs(V).max(axis=0)).sum())

    def holds(self, X: Floats) -> bool:
        """Section 12, llf, scale: whether rows lie within the ranges."""
        inside = (self.low <= X) & (self.high >= X)
        return self.prepared or bool(inside.all())


def find_scale(view: View, params: Mapping[str, Any]) -> Scale:
    """Section 12, llf, scale: that of a party's column group."""
    session = view.session
    low, high = session.ranges()
    limits = find_limits(session, params, session.slot)
    offset, factor = np.zeros_like(low), np.ones_like(low)
    if params["scaling"] == "standard":
        pooled = view.recall("moments")
        deviation = np.where(pooled.deviation > 0, pooled.deviation, 1.0)
        offset, factor = pooled.mean, 1.0 / session.units(deviation)
    elif params["scaling"] == "minmax":
        offset, factor = low, 1.0 / _widths(low, high)
    return Scale(offset, factor, *limits, low, high, session.plan is not None)


def _widths(low: Floats, high: Floats) -> Floats:
    """Section 12, llf, scale: widths of ranges."""
    return np.where(high > low, high - low, 1.0)


def find_limits(
    session: Session, params: Mapping[str, Any], slot: str
) -> tuple[Floats, Floats, Floats, Floats]:
    """Section 12, llf, scale: L, B, Q and e of the columns of a slot."""
    low, high = session.ranges(slot)
    n, ones = float(session.n_rows(session.group("column", slot))), np.ones_like(low)
    if params["scaling"] == "standard":
        plan = read_plan(session.terms, slot)
        weights = plan.weights if plan else ones
        most = 1.001 * n * weights
        return 1.001 * np.sqrt(n) * weights, most, most * weights, ones
    if params["scaling"] == "minmax":
        return ones, n * ones, n * ones, ones
    largest = np.maximum(np.abs(low), np.abs(high))
    largest = np.where(largest > 0, largest, 1.0)
    return largest, n * largest, n * np.square(largest), _widths(low, high)
