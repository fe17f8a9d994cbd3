"""Scaling of rows: by pooled means and deviations, by declared ranges, or not at all.

A protocol that scales rows has a parameter ``scaling``: 'standard', 'minmax' or 'none'.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from clustering_protocols.common.errors import GuardRefused, InvalidParameters
from clustering_protocols.contract import PartyContext, SessionContext
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.moments import PooledMoments, measure_moments
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.secrecy.fixed_point import EXACT_BITS, FixedPoint
from clustering_protocols.terms.preparation import Ranges

_ROUNDING: Final = 1.001
_FEWEST_STEPS: Final = 100.0
"""Minimum steps of the encoding per standard deviation, so that rounding is below 1 %."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scaler:
    """The scaling of rows, (x - offset) · inverse, and bounds on scaled values.

    offset, inverse: float64 (m,).
    limit: float64 (m,); upper bound on the absolute value of each scaled feature.
    sum_limit, square_limit: float64 (m,); upper bounds on the sums, over all rows, of
        the absolute values and of the squares of each scaled feature.
    step: float64 (m,); the unit in which the centroid of an empty cluster is perturbed.
    ranges: the dictionary's ranges in the units of the data, infinite if it has none.
    """

    offset: FloatArray
    inverse: FloatArray
    limit: FloatArray
    sum_limit: FloatArray
    square_limit: FloatArray
    step: FloatArray
    ranges: Ranges

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return rows (n, m) in scaled units."""
        return (X - self.offset) * self.inverse

    @property
    def affine(self) -> tuple[FloatArray, FloatArray]:
        """Return the affine map of the scaling, offset and inverse, as kernels take it."""
        return self.offset, self.inverse

    def bound_squared_distances(self, V: FloatArray) -> float:
        """Return an upper bound on the squared distance of any row from points V (k, m)."""
        return float(np.square(self.limit + np.abs(V).max(axis=0)).sum())

    def unscale(self, Z: FloatArray) -> FloatArray:
        """Convert scaled rows (n, m) back to the units of the data."""
        return Z / self.inverse + self.offset


def check_start_columns(session: SessionContext[Any]) -> None:
    """Raise InvalidParameters unless initial centroids have as many columns as the data."""
    centroids, width = session.params.initial_centroids, sum(session.column_widths)
    if centroids is not None and any(len(row) != width for row in centroids):
        raise InvalidParameters(f"initial_centroids needs {width} numbers in each row.")


def scaler_of(context: PartyContext[Any]) -> Scaler:
    """Return the scaler for the columns of a party, using its pooled moments if needed."""
    moments = None
    if context.session.params.scaling == "standard":
        moments = context.recall(PooledMoments)
    return build_scaler(context.session, context.slot.column, moments)


def build_scaler(
    session: SessionContext[Any], column: int, moments: PooledMoments | None
) -> Scaler:
    """Return the scaler of a column group.

    moments: the pooled moments, which scaling 'standard' needs. The analyst has no
        moments and passes None; then only the bounds and steps of the scaler are valid.
    """
    params = session.params
    group = session.layout.column_group(column)
    width = session.member(group[0]).n_columns
    n_rows = sum(session.n_rows(slot) for slot in group)
    ranges = session.bounds(group[0])
    low, high = ranges
    ones = np.ones(width)
    if params.scaling == "standard":
        mean = moments.mean if moments else np.zeros(width)
        spread = moments.spread if moments else ones
        weights = session.weights(group[0], width)
        # As Σz² = n, |z| ≤ √n and, by Cauchy-Schwarz, Σ|z| ≤ n; plus a margin for rounding
        return Scaler(
            offset=mean,
            inverse=1.0 / session.units(group[0], spread),
            limit=_ROUNDING * np.sqrt(n_rows) * weights,
            sum_limit=_ROUNDING * n_rows * weights,
            square_limit=_ROUNDING * n_rows * np.square(weights),
            step=ones,
            ranges=ranges,
        )
    extent = np.where(high > low, high - low, 1.0)
    minmax = params.scaling == "minmax"
    farthest = np.maximum(np.abs(low), np.abs(high))
    largest = ones if minmax else np.where(farthest > 0, farthest, 1.0)
    return Scaler(
        offset=low if minmax else np.zeros(width),
        inverse=1.0 / extent if minmax else ones,
        limit=largest,
        sum_limit=n_rows * largest,
        square_limit=n_rows * np.square(largest),
        step=ones if minmax else extent,
        ranges=ranges,
    )


def check_ranges(context: PartyContext[Any], data: DataSource) -> None:
    """Raise if rows are outside the dictionary's ranges, before anything is sent.

    Ranges are also refused if they are so wide that sums or distances would be rounded
    to nearly nothing. Prepared fields are not checked here: they were checked when they
    were read, and the values that fill their gaps may exceed a range by a rounding
    error.
    """
    if context.session.terms.plan(context.slot.name) is not None:
        return
    context.session.bounds(context.slot.name).check(data)
    if context.session.params.scaling == "standard":
        return
    scale = scaler_of(context)
    spread = measure_moments(data).spread * scale.inverse
    if context.session.layout.n_column_groups == 1:
        steps = spread * FixedPoint.of(scale.sum_limit, EXACT_BITS).unit
    else:  # squared distances are encoded
        steps = np.square(spread) * FixedPoint.of(np.square(2.0 * scale.limit)).unit
    hidden = np.array(data.columns)[(spread > 0) & (steps < _FEWEST_STEPS)]
    if hidden.size:
        raise GuardRefused(
            f"The dictionary's range of {', '.join(map(repr, hidden.tolist()))} is so wide "
            "that rounding would hide the differences between your rows: ask the "
            "coordinator for the true minimum and maximum, or for scaling 'standard'."
        )
