"""A party's rows on the way from fields to columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.data import DataSource
from clustering_protocols.errors import InvalidData
from clustering_protocols.recipe.plan import Plan
from clustering_protocols.schema import Schema


class Observed:
    """Rows as their party has them, a column per field, NaN where there is no value.

    What a party sees until it is known what fills the gaps. The names are those of the
    columns to come: that they are alike is compared before anything is pooled.
    """

    def __init__(self, source: DataSource, plan: Plan) -> None:
        self._source, self._plan = source, plan
        self.n_rows, self.columns = source.n_rows, plan.columns

    @property
    def ids(self) -> Sequence[str] | None:
        """Return the ids of the source."""
        return self._source.ids

    def batches(self) -> Iterator[FloatArray]:
        """Yield rows as (batch, fields) arrays."""
        for batch in self._source.batches():
            yield self._plan.observed(batch)


def check_fields(source: DataSource, schema: Schema) -> None:
    """Refuse columns that are others than the fields, or in another order."""
    if tuple(source.columns) != schema.names:
        raise InvalidData(
            "The terms describe other columns, or another order of them: "
            f"{', '.join(schema.names[:20])}."
        )


def whole_rows(source: DataSource, plan: Plan) -> IntArray | None:
    """Return the numbers of the rows that take part: those that lack nothing they need.

    None where all do.

    Parameters
    ----------
    source : DataSource
        With the fields for columns.

    Raises
    ------
    InvalidData
        If a field lacks a value and its gaps are refused, or no row is left.
    """
    dropping, refusing = plan.lacking("drop"), plan.lacking("refuse")
    if not (len(dropping) or len(refusing)):
        return None
    kept, begin = [], 0
    for batch in source.batches():
        gaps = np.isnan(batch)
        if lacking := [i for i in refusing if gaps[:, i].any()]:
            names = ", ".join(plan.schema.names[place] for place in lacking[:10])
            raise InvalidData(f"Values are missing in {names}.")
        kept.append(begin + np.flatnonzero(~gaps[:, dropping].any(axis=1)))
        begin += len(batch)
    rows = np.concatenate(kept)
    if not len(rows):
        raise InvalidData("No row has all the values that it needs to take part.")
    return None if len(rows) == source.n_rows else rows


class Prepared(Observed):
    """The same rows as the columns that are clustered."""

    def __init__(self, source: DataSource, plan: Plan, filled: FloatArray) -> None:
        super().__init__(source, plan)
        self._filled = filled

    def batches(self) -> Iterator[FloatArray]:
        """Yield rows as (batch, columns) arrays, finite."""
        for batch in super().batches():
            yield self._plan.prepare(batch, self._filled)
