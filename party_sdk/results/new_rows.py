"""New rows with their labels, beside what a home keeps of the trained ones.

Kept are a few numbers of each column, which never leave the home; nothing is sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
from pydantic import Field

from clustering_protocols.contract import Placement
from clustering_protocols.numerics.data_source import DataSource, keep_rows
from clustering_protocols.records.arrays import FloatArray, IntArray, Spec
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.statistics.by_leader import (
    Moments,
    OwnMoments,
    measure,
)
from clustering_protocols.shared_stages.statistics.units import (
    Distribution,
    columns_of,
    question,
)
from clustering_protocols.terms.schema import Schema
from clustering_protocols.terms.terms import Terms
from coterie_pages.models import ClusterDrift, NewRowsSummary, VariableDrift
from party_sdk.results.label_files import encode_labels, naming_of, write_labels


class VariableMoments(Record):
    """Memory: moments of the own rows before preparation.

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


def measure_variables(rows: DataSource) -> VariableMoments:
    """Return moments and ranges of a table's own variables, values alone."""
    width = len(rows.columns)
    counts, total = np.zeros(width, dtype=np.int64), np.zeros(width)
    low, high = np.full(width, np.inf), np.full(width, -np.inf)
    for batch in rows.batches():
        is_value = ~np.isnan(batch)
        counts += is_value.sum(axis=0)
        total += np.where(is_value, batch, 0.0).sum(axis=0)
        low = np.minimum(low, np.where(is_value, batch, np.inf).min(axis=0))
        high = np.maximum(high, np.where(is_value, batch, -np.inf).max(axis=0))
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


_MOST_LISTED: Final = 200


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """New rows compared with the trained rows of a home.

    trained: moments and ranges of the own rows, as they were clustered.
    variables: the same rows as the table had them; None where nothing was prepared.
    sizes: int64 (k,); own trained rows in each cluster.
    table: the new rows as they were read.
    rows, numbers: those that can get a label, as the columns that were clustered, and
        their numbers (n,) in the table.
    """

    terms: Terms
    slot: str
    trained: OwnMoments
    variables: VariableMoments | None
    sizes: IntArray
    table: DataSource
    rows: DataSource
    numbers: IntArray

    @cached_property
    def doubt(self) -> str:
        """Return a question if columns seem to have other units than the session's."""
        plan, dictionary = self.terms.plan(self.slot), self._dictionary
        columns = columns_of(self.rows.columns, plan, dictionary)
        session, new = map(Distribution.from_moments, (self.trained, self._moments))
        return question(columns, new, session, "the session's rows")

    def summarise(self, placement: Placement) -> tuple[FloatArray, NewRowsSummary]:
        """Return the share of columns out of range per row, and the summary."""
        n_rows, width = len(self.numbers), len(self.rows.columns)
        of_rows, of_columns = self._count_outside()
        columns = sorted(
            self._compare_columns(of_columns / n_rows),
            key=lambda column: -abs(column.shift or 0.0),
        )
        farthest = (
            np.inf
            if placement.own_distances is None
            else float(np.nanmax(placement.own_distances))
        )
        summary = NewRowsSummary(
            n_rows=self.table.n_rows,
            n_labelled=n_rows,
            n_trained=self.trained.n_rows,
            outside=int(np.count_nonzero(of_rows > 0)) / n_rows,
            # of exchangeable rows each column has 2 / (n + 1) outside
            by_chance=min(1.0, 2 * width / (self.trained.n_rows + 1)),
            farthest=farthest if np.isfinite(farthest) else None,
            clusters=tuple(
                _compare_clusters(self.sizes, placement.labels[self.numbers])
            ),
            variables=tuple(columns[:_MOST_LISTED]),
            more_variables=max(0, width - _MOST_LISTED),
        )
        return of_rows, summary

    def _compare_columns(self, outside: FloatArray) -> Iterator[VariableDrift]:
        """Yield the columns that were clustered, with means as the table says them.

        outside: float64 (m,); share of rows outside the trained range.
        """
        plan, dictionary = self.terms.plan(self.slot), self._dictionary
        trained, current = self.trained, self._moments
        shifts = np.full(len(outside), np.nan)
        moved, spread = current.mean - trained.mean, trained.spread
        np.divide(moved, spread, out=shifts, where=spread > 0)
        numbers: dict[str, int] = {}
        before = after = None
        if plan is not None:
            rows = self.table
            if len(self.numbers) < rows.n_rows:
                rows = keep_rows(rows, self.numbers)
            before, after = self.variables, measure_variables(rows)
            names = () if dictionary is None else dictionary.names
            numbers = {name: number for number, name in enumerate(names)}
        for index, name in enumerate(self.rows.columns):
            number = index if plan is None else numbers[plan.sources[index]]
            in_units = plan is not None and bool(plan.in_units[index])
            figures: dict[str, Any] = {}
            if plan is None or in_units:
                unit = float(plan.bounds.high[index]) if plan is not None else 1.0
                figures["then"] = float(trained.mean[index]) / unit
                figures["now"] = float(current.mean[index]) / unit
            else:
                figures["then"] = _observed_mean(before, number)
                figures["now"] = _observed_mean(after, number)
            if plan is not None:
                figures["missing_then"] = _missing_share(before, number)
                figures["missing_now"] = _missing_share(after, number)
            if dictionary is not None and not in_units:
                field = dictionary.fields[number]
                figures |= {"unit": field.unit, "is_date": field.type == "date"}
            yield VariableDrift(
                name=name,
                is_share=in_units,
                shift=None if np.isnan(shifts[index]) else float(shifts[index]),
                outside=float(outside[index]),
                **figures,
            )

    @property
    def _dictionary(self) -> Schema | None:
        return self.terms.dictionary_of(self.slot)

    @cached_property
    def _moments(self) -> Moments:
        return measure(self.rows, moments=True, ranges=False)

    def _count_outside(self) -> tuple[FloatArray, IntArray]:
        """Return shares of columns by row (n,), and numbers of rows by column (m,)."""
        of_rows = np.full(self.table.n_rows, np.nan)
        of_columns = np.zeros(len(self.rows.columns), dtype=np.int64)
        begin = 0
        for batch in self.rows.batches():
            is_outside = batch < self.trained.minimum
            is_outside |= batch > self.trained.maximum
            of_columns += is_outside.sum(axis=0)
            numbers = self.numbers[begin : begin + len(batch)]
            of_rows[numbers] = is_outside.mean(axis=1)
            begin += len(batch)
        return of_rows, of_columns


def _missing_share(variables: VariableMoments | None, number: int) -> float | None:
    return None if variables is None else float(variables.missing_shares[number])


def _observed_mean(variables: VariableMoments | None, number: int) -> float | None:
    if variables is None or not variables.counts[number]:
        return None
    return float(variables.mean[number])


def _compare_clusters(before: IntArray, labels: IntArray) -> Iterator[ClusterDrift]:
    sizes = np.bincount(labels, minlength=len(before))
    before = np.pad(before, (0, len(sizes) - len(before)))
    n_before, n_now = int(before.sum()), int(sizes.sum())
    for cluster, n_rows in enumerate(sizes.tolist()):
        yield ClusterDrift(
            cluster=cluster,
            n_rows=n_rows,
            then=float(before[cluster]) / n_before if n_before else None,
            now=n_rows / n_now if n_now else 0.0,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NewRows:
    """New rows with their labels, in the order of their table.

    labels: int64 (n_rows,); -1 for rows that lack a value which they need.
    distances: float64 (n_rows,) or None; from each row to the centre of its cluster, in
        the units in which the session compared rows; NaN for rows without a label. None
        where a party knows no centre.
    centre_distances: float64 (n_rows, n_clusters) or None; the same to every centre.
    uncertainty: float64 (n_rows,) or None; how unsure the label is, from 0 to 1; see
        :class:`~clustering_protocols.contract.Placement`.
    memberships: float64 (n_rows, n_clusters) or None; of a mixture.
    outside: float64 (n_rows,) or None; the share of a row's columns outside the trained
        range; NaN for rows without a label. None in a simulation.
    summary: what may be said of them as a whole, without any row; None in a simulation,
        where no home keeps trained rows.
    ids, naming: what names the rows, and the columns that hold it.
    """

    labels: IntArray = field(repr=False)
    distances: FloatArray | None = field(repr=False)
    centre_distances: FloatArray | None = field(repr=False)
    uncertainty: FloatArray | None = field(repr=False)
    memberships: FloatArray | None = field(repr=False)
    outside: FloatArray | None = field(repr=False)
    summary: NewRowsSummary | None
    ids: Sequence[str] | None = field(repr=False)
    naming: tuple[str, ...]

    @classmethod
    def from_placement(
        cls, placement: Placement, data: DataSource, review: Comparison | None
    ) -> NewRows:
        """Return placed rows with their comparison to the trained rows."""
        outside = summary = None
        if review is not None:
            outside, summary = review.summarise(placement)
        return cls(
            labels=placement.labels,
            distances=placement.own_distances,
            centre_distances=placement.distances,
            uncertainty=placement.uncertainty,
            memberships=placement.memberships,
            outside=outside,
            summary=summary,
            ids=data.ids,
            naming=naming_of(data),
        )

    def save(self, path: str | Path) -> Path:
        """Write labels, distances and shares: CSV, Parquet or Excel by the ending."""
        return write_labels(
            Path(path), self.labels, self.ids, self.naming, self._columns
        )

    def encode(self, ending: str) -> bytes:
        """Return what :meth:`save` writes into a file with this ending, such as .csv."""
        return encode_labels(ending, self.labels, self.ids, self.naming, self._columns)

    @property
    def _columns(self) -> Mapping[str, FloatArray]:
        """Return what stands beside the labels; what is not known has no column."""
        columns = {
            "distance": self.distances,
            "uncertainty": self.uncertainty,
            "outside": self.outside,
        }
        return {name: values for name, values in columns.items() if values is not None}
