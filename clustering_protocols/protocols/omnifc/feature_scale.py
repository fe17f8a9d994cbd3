"""What every party does alike to each feature: a factor, and where its range begins."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.terms.preparation import Ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """What every party does alike to each feature.

    factor: float64 (n_features,).
    minimum, maximum: float64 (n_features,); of the features as given.
    unit_norm: rows are divided by their length instead.
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


def factors(scaling: str, spread: FloatArray, ranges: FloatArray) -> FloatArray:
    """Return what each feature is multiplied with; constant features stay as they are.

    Where the mean lies does not matter: a shift changes no distance. Of prepared columns
    the spread is their unit.
    """
    divisor = {"standard": spread, "minmax": ranges}.get(scaling)
    if divisor is None:
        return np.ones_like(spread)
    return 1.0 / np.where(divisor > 0, divisor, 1.0)


def build_declared_scale(scaling: str, given: Ranges) -> Scale:
    """Return the scale of the dictionary's ranges; no spread is asked for there."""
    return Scale(
        factor=factors(scaling, np.ones_like(given.low), given.high - given.low),
        minimum=given.low,
        maximum=given.high,
        unit_norm=False,
    )
