"""Scaling that all parties agree on, and what it makes of a feature's range."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from clustering_protocols.arrays import FloatArray
from clustering_protocols.data import DataSource, matrix
from clustering_protocols.preparation.statistics.by_leader import PooledMoments
from clustering_protocols.preparation.statistics.moments import PartialMoments
from clustering_protocols.recipe import Ranges

from .params import OmniContext, OmniFC


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """What every party does alike to each feature.

    Attributes
    ----------
    factor : float64 array of shape (n_features,)
    minimum, maximum : float64 arrays of shape (n_features,)
        Of the features as given.
    unit_norm : bool
        Rows are divided by their length instead.
    """

    factor: FloatArray = field(repr=False)
    minimum: FloatArray = field(repr=False)
    maximum: FloatArray = field(repr=False)
    unit_norm: bool

    @property
    def ranges(self) -> FloatArray:
        """Return R_f, the range of each scaled feature."""
        return (self.maximum - self.minimum) * self.factor

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return scaled rows (n, n_features), shifted so that 0 is the least value."""
        scaled = by_length(X) if self.unit_norm else X
        return (scaled - self.minimum) * self.factor


def by_length(X: FloatArray) -> FloatArray:
    """Return rows divided by their Euclidean length; a row of zeros stays."""
    length = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(length > 0, length, 1.0)


def factors(params: OmniFC, spread: FloatArray, ranges: FloatArray) -> FloatArray:
    """Return what each feature is multiplied with; constant features stay as they are.

    Where the mean lies does not matter: a shift changes no distance. Of prepared columns
    the spread is their unit.
    """
    divisor = {"standard": spread, "minmax": ranges}.get(params.scaling)
    if divisor is None:
        return np.ones_like(spread)
    return 1.0 / np.where(divisor > 0, divisor, 1.0)


def agreed(context: OmniContext, params: OmniFC) -> Scale:
    """Return the scale that follows from the dictionary or from pooled statistics.

    Pooled moments come with a power of two that no value's distance from the mean
    reaches: a range at most four times too wide, which costs two binary digits and
    shows nobody's own values.
    """
    n_features = context.session.member(context.slot.name).n_columns
    if params.scaling == "unit_norm":
        ones = np.ones(n_features)
        return Scale(factor=ones, minimum=-ones, maximum=ones, unit_norm=True)
    if params.ranges == "declared":
        return declared(params, context.session.bounds(context.slot.name))
    known = context.recall(PooledMoments)
    if params.scaling == "minmax":
        low, high, spread = known.minimum, known.maximum, np.ones(n_features)
    else:
        reach = 2.0 ** context.recall(PartialMoments).deviation_powers.astype(
            np.float64
        )
        low, high = known.mean - reach, known.mean + reach
        spread = context.session.units(context.slot.name, known.spread)
    return Scale(
        factor=factors(params, spread, high - low),
        minimum=low,
        maximum=high,
        unit_norm=False,
    )


def declared(params: OmniFC, given: Ranges) -> Scale:
    """Return the scale of the dictionary's ranges; no spread is asked for there."""
    return Scale(
        factor=factors(params, np.ones_like(given.low), given.high - given.low),
        minimum=given.low,
        maximum=given.high,
        unit_norm=False,
    )


def scaled_rows(params: OmniFC, scale: Scale, data: DataSource) -> FloatArray:
    """Return a party's scaled rows.

    Raises
    ------
    InvalidData
        If a value lies outside its range in the dictionary: its distances could wrap
        around the field.
    """
    if params.ranges == "declared":
        Ranges(scale.minimum, scale.maximum).check(data)
    return scale(matrix(data))
