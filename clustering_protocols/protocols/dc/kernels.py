"""The party's private map f_ij: scaling, reduction, a secret rotation.

X is n × m, one party's rows. Rows are read in batches; nothing of the size of X is
formed but the reduced rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import FloatArray

from .factors import qr_r
from .reductions import RowFunction


class RowMap(ABC):
    """A private map f_ij of rows."""

    @abstractmethod
    def __call__(self, X: FloatArray) -> FloatArray:
        """Return the images (n, width) of rows (n, m)."""

    def rows(self, data: DataSource) -> FloatArray:
        """Return the images of all rows of a source."""
        return np.concatenate([self(batch) for batch in data.batches()])


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformedRows(RowMap):
    """Any function of rows, then a rotation.

    function: from rows (n, m) to images (n, width).
    rotation: float64 (width, width).
    """

    function: RowFunction = field(repr=False)
    rotation: FloatArray = field(repr=False)

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return the images (n, width) of rows (n, m)."""
        return self.function(X) @ self.rotation


@dataclass(frozen=True, slots=True, kw_only=True)
class Affine(RowMap):
    """The map x -> ((x - offset) / scale) F.

    offset, scale: float64 (m,).
    F: float64 (m, width).
    """

    offset: FloatArray = field(repr=False)
    scale: FloatArray = field(repr=False)
    F: FloatArray = field(repr=False)

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return the images (n, width) of rows (n, m)."""
        return ((X - self.offset) / self.scale) @ self.F


def triangular_factor(
    data: DataSource, mean: FloatArray, scale: FloatArray
) -> FloatArray:
    """Return R (m × m) of a QR factorisation of (X - mean) / scale, batch by batch."""
    m = len(mean)
    R: FloatArray = np.zeros((0, m))
    for batch in data.batches():
        R = qr_r(np.vstack([R, (batch - mean) / scale]))
    return R


def principal_axes(
    R: FloatArray, n_rows: int, shift: float = 0.0
) -> tuple[FloatArray, int]:
    """Return all right singular vectors (m × m) by falling value, and the rank.

    R: float64 array; a triangular factor of the centred data.
    n_rows: of the data, for the threshold below which a singular value counts as zero.
    shift: norm of what was subtracted from each row: x - mean is rounded relative to x.
        Rounding is no dimension; counted as one it would be what is left out.
    """
    _, values, Vt = np.linalg.svd(R)
    rounding = np.finfo(np.float64).eps * max(values[0], shift)
    threshold = max(n_rows, R.shape[1]) * rounding
    rank = int(np.count_nonzero(values > threshold)) if values[0] > 0 else 0
    return Vt.T, rank


def reduced_width(rank: int, n_rows: int) -> int:
    """Return m̃: one dimension less than the data have, at least one.

    A column that is constant adds no rank: 'one less than the number of columns' would
    then leave nothing out.
    """
    return max(1, min(rank, n_rows) - 1)


def spread_or_one(spread: FloatArray) -> FloatArray:
    """Return spreads with 1 in place of 0: a constant feature is only shifted."""
    return np.where(spread > 0, spread, 1.0)
