"""New rows beside the trained ones, before and after they have labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from clustering_protocols.contract import Placement
from clustering_protocols.numerics.data_source import DataSource, keep_rows
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.shared_stages.statistics.by_leader import Moments, measure
from clustering_protocols.shared_stages.statistics.other_units import (
    Others,
    columns_of,
    question,
)
from clustering_protocols.terms.preparation import Ranges
from clustering_protocols.terms.schema import Schema
from clustering_protocols.terms.terms import Terms
from coterie_pages.models import NewRowsSummary
from party_sdk.results.drift_summary import MeasuredRows, summarise
from party_sdk.results.trained_rows import (
    TrainedRows,
    VariableMoments,
    measure_variables,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """New rows beside what a home keeps of the trained ones.

    table: the new rows as they were read.
    rows, numbers: those that can get a label, as the columns that were clustered, and
        their numbers (n,) in the table.
    """

    terms: Terms
    slot: str
    trained: TrainedRows
    table: DataSource
    rows: DataSource
    numbers: IntArray

    @cached_property
    def doubt(self) -> str:
        """Return which columns look like other units than those of the session."""
        known = self.trained.moments
        if known is None:
            return ""
        plan, dictionary = self.terms.plan(self.slot), self._dictionary
        columns = columns_of(self.rows.columns, plan, dictionary)
        session = Others(known.mean, known.spread)
        return question(columns, self._moments, session, "the session's rows")

    def summarise(
        self, placement: Placement
    ) -> tuple[FloatArray | None, NewRowsSummary]:
        """Return the share of columns outside of each row, and what is said of all."""
        found = self.trained.ranges
        of_rows = of_columns = None
        if found is not None:
            of_rows, of_columns = self._count_outside(found[1])
        plan = self.terms.plan(self.slot)
        measured = MeasuredRows(
            n_rows=self.table.n_rows,
            columns=tuple(self.rows.columns),
            moments=self._moments,
            variables=None if plan is None else self._measure_variables(),
            labels=placement.labels[self.numbers],
            outside=of_columns,
            rows_outside=None
            if of_rows is None
            else int(np.count_nonzero(of_rows > 0)),
            farthest=_find_farthest(placement.own_distances),
        )
        return of_rows, summarise(self.trained, measured, plan, self._dictionary)

    def _measure_variables(self) -> VariableMoments:
        rows = self.table
        if len(self.numbers) < rows.n_rows:
            rows = keep_rows(rows, self.numbers)
        return measure_variables(rows)

    @property
    def _dictionary(self) -> Schema | None:
        return self.terms.dictionary_of(self.slot)

    @cached_property
    def _moments(self) -> Moments:
        return measure(self.rows, moments=True, ranges=False)

    def _count_outside(self, ranges: Ranges) -> tuple[FloatArray, IntArray]:
        """Return shares of columns by row (n,), and numbers of rows by column (m,)."""
        of_rows = np.full(self.table.n_rows, np.nan)
        of_columns = np.zeros(len(self.rows.columns), dtype=np.int64)
        begin = 0
        for batch in self.rows.batches():
            is_outside = (batch < ranges.low) | (batch > ranges.high)
            of_columns += is_outside.sum(axis=0)
            numbers = self.numbers[begin : begin + len(batch)]
            of_rows[numbers] = is_outside.mean(axis=1)
            begin += len(batch)
        return of_rows, of_columns


def _find_farthest(distances: FloatArray | None) -> float | None:
    """Return the largest distance; None where none is known, or it is beyond numbers."""
    farthest = np.inf if distances is None else float(np.nanmax(distances))
    return farthest if np.isfinite(farthest) else None
