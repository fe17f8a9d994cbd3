"""What a home keeps of the rows that a session clustered, to compare new rows with them.

A few numbers of each column; they never leave the home.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import FloatArray, IntArray, Spec
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.statistics.by_leader import OwnMoments, measure


class VariableMoments(Record):
    """Memory: the own rows as the table has them, before they were prepared.

    counts: how many rows have a value.
    mean, deviations, minimum, maximum: of these, in the units of the table; 0 where
        there is none. ``deviations`` are sums of squares, as in :class:`Moments`.
    """

    kind = "variable-moments"

    n_rows: int = Field(ge=1)
    counts: Annotated[IntArray, Spec("variables", low=0)]
    mean: Annotated[FloatArray, Spec("variables")]
    deviations: Annotated[FloatArray, Spec("variables", low=0)]
    minimum: Annotated[FloatArray, Spec("variables")]
    maximum: Annotated[FloatArray, Spec("variables")]

    @property
    def missing_shares(self) -> FloatArray:
        """Return the share of rows without a value, of each variable."""
        return 1.0 - self.counts / self.n_rows


def measure_prepared(rows: DataSource) -> OwnMoments:
    """Return the moments and ranges of own rows, as they were clustered."""
    return OwnMoments.model_validate(dict(measure(rows, moments=True, ranges=True)))


def measure_variables(rows: DataSource) -> VariableMoments:
    """Return the same of a table's own variables, values alone."""
    width = len(rows.columns)
    counts, total = np.zeros(width, dtype=np.int64), np.zeros(width)
    low, high = np.full(width, np.inf), np.full(width, -np.inf)
    for batch in rows.batches():
        known = ~np.isnan(batch)
        counts += known.sum(axis=0)
        total += np.where(known, batch, 0.0).sum(axis=0)
        low = np.minimum(low, np.where(known, batch, np.inf).min(axis=0))
        high = np.maximum(high, np.where(known, batch, -np.inf).max(axis=0))
    has_some = counts > 0
    mean = total / np.maximum(counts, 1)
    deviations = np.zeros(width)
    for batch in rows.batches():
        deviations += np.nansum(np.square(batch - mean), axis=0)
    return VariableMoments(
        n_rows=rows.n_rows,
        counts=counts,
        mean=mean,
        deviations=deviations,
        minimum=np.where(has_some, low, 0.0),
        maximum=np.where(has_some, high, 0.0),
    )
