"""A party's rows on the way from fields to columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.numerics.data_source import DataSource, keep_columns
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.terms.preparation.plan import ColumnPlan
from clustering_protocols.terms.schema import Schema


class ObservedRows:
    """Rows as their party has them, a column per field, NaN where there is no value.

    What a party sees until it is known what fills the gaps. The names are those of the
    columns to come: that they are alike is compared before anything is pooled.
    """

    def __init__(self, source: DataSource, plan: ColumnPlan) -> None:
        self._source, self._plan = source, plan
        self.n_rows, self.columns = source.n_rows, plan.columns

    @property
    def ids(self) -> Sequence[str] | None:
        """Return the ids of the source."""
        return self._source.ids

    def batches(self) -> Iterator[FloatArray]:
        """Yield rows as (batch, fields) arrays."""
        for batch in self._source.batches():
            yield self._plan.take_logarithms(batch)


def check_fields(source: DataSource, schema: Schema) -> None:
    """Refuse columns that are others than the fields, or in another order."""
    if tuple(source.columns) != schema.names:
        raise InvalidData(
            "The terms describe other columns, or another order of them: "
            f"{', '.join(schema.names[:20])}."
        )


def clustered_columns(source: DataSource, schema: Schema | None) -> DataSource:
    """Return what is clustered of a party's rows: no column that is only described.

    This is where a session parts the two. Profiles alone read the rows as they are.

    source: with the fields that the dictionary uses for columns, or those it clusters.
    """
    if schema is None or not schema.described_names:
        return source
    if tuple(source.columns) == schema.clustered_part.names:
        return source
    check_fields(source, schema)
    roles = enumerate(field.role for field in schema.fields)
    places = [place for place, role in roles if role == "cluster"]
    return keep_columns(source, np.array(places, dtype=np.int64))


def whole_rows(source: DataSource, plan: ColumnPlan) -> IntArray | None:
    """Return the numbers of the rows that take part: those that lack nothing they need.

    None where all do.

    source: with the fields for columns.

    Raises InvalidData if a field lacks a value and its gaps are refused, or no row is
        left.
    """
    dropping, refusing = (
        plan.find_places_by_missing("drop"),
        plan.find_places_by_missing("refuse"),
    )
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


class PreparedRows(ObservedRows):
    """The same rows as the columns that are clustered."""

    def __init__(
        self, source: DataSource, plan: ColumnPlan, filled: FloatArray
    ) -> None:
        super().__init__(source, plan)
        self._filled = filled

    def batches(self) -> Iterator[FloatArray]:
        """Yield rows as (batch, columns) arrays, finite."""
        for batch in super().batches():
            yield self._plan.prepare(batch, self._filled)
