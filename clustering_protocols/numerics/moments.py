"""Moments of a party's own rows, and the pooled moments of a column group."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import FloatArray, Spec
from clustering_protocols.records.record import Record


class Moments(Record):
    """The number of rows and, for each column, the mean and the deviations.

    deviations: the sums of squared deviations from the mean.
    """

    n_rows: int = Field(ge=1)
    mean: Annotated[FloatArray, Spec("columns")]
    deviations: Annotated[FloatArray, Spec("columns", low=0)]

    @property
    def spread(self) -> FloatArray:
        """Return the standard deviation (divisor n) of each column."""
        return np.sqrt(self.deviations / self.n_rows)


class OwnMoments(Moments):
    """Moments and ranges of a party's own rows, which its home stores and never sends."""

    kind = "own-moments"

    minimum: Annotated[FloatArray, Spec("columns")]
    maximum: Annotated[FloatArray, Spec("columns")]


class PooledMoments(Moments):
    """Moments over all rows of the column group, as a memory entry of a party."""

    kind = "pooled-moments"


def measure_moments(data: DataSource) -> OwnMoments:
    """Compute the moments and ranges of rows, in two passes over the batches.

    The second pass adds up squared deviations from the mean, because sums of squares
    would lose all digits of a column whose mean is much larger than its deviation.
    """
    width = len(data.columns)
    total, low = np.zeros(width), np.full(width, np.inf)
    high = -low
    for batch in data.batches():
        total += batch.sum(axis=0)
        low, high = (
            np.minimum(low, batch.min(axis=0)),
            np.maximum(high, batch.max(axis=0)),
        )
    # Otherwise rounding could give a constant column a deviation of 1e-17.
    mean = np.where(low == high, low, total / data.n_rows)
    deviations = np.zeros(width)
    for batch in data.batches():
        deviations += np.square(batch - mean).sum(axis=0)
    return OwnMoments(
        n_rows=data.n_rows, mean=mean, deviations=deviations, minimum=low, maximum=high
    )
