"""New rows with their labels, compared with stored statistics of the trained rows.

The statistics are a few numbers per column, which are never sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from clustering_protocols.contract import Placement
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.moments import Moments, OwnMoments, measure_moments
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.shared_stages.statistics.units import (
    Distribution,
    build_unit_question,
    measured_columns,
)
from clustering_protocols.terms.terms import Terms
from coterie_pages.models import ClusterDrift, NewRowsSummary, VariableDrift
from party_sdk.results.label_files import encode_labels, naming_of, write_labels

_MOST_LISTED: Final = 200


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """New rows compared with the trained rows, which a session at this home clustered.

    trained: moments and ranges of the party's clustered rows.
    sizes: int64 (k,); the number of the party's trained rows in each cluster.
    table: the new rows.
    rows, numbers: those new rows that can be labelled, with the clustered columns, and
        their indices (n,) in the table.
    """

    terms: Terms
    slot: str
    trained: OwnMoments
    sizes: IntArray
    table: DataSource
    rows: DataSource
    numbers: IntArray

    @cached_property
    def unit_question(self) -> str:
        """Return a question if units seem to differ from the session's, otherwise ''."""
        plan = self.terms.plan(self.slot)
        dictionary = self.terms.dictionary_of(self.slot)
        columns = measured_columns(self.rows.columns, plan, dictionary)
        session, new = map(Distribution.from_moments, (self.trained, self._new_moments))
        return build_unit_question(columns, new, session, "the session's rows")

    def summarise(self, placement: Placement) -> tuple[FloatArray, NewRowsSummary]:
        """Return the proportion of out-of-range columns of each row, and a summary."""
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
            # A fraction 2 / (n + 1) of exchangeable rows is outside a column's range.
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
        """Yield the drift of each clustered column.

        outside: float64 (m,); the proportion of new rows outside the trained range.
        """
        shifts = np.full(len(outside), np.nan)
        change, spread = self._new_moments.mean - self.trained.mean, self.trained.spread
        np.divide(change, spread, out=shifts, where=spread > 0)
        for name, shift, share in zip(self.rows.columns, shifts, outside, strict=True):
            yield VariableDrift(
                name=name,
                shift=None if np.isnan(shift) else float(shift),
                outside=float(share),
            )

    @cached_property
    def _new_moments(self) -> Moments:
        return measure_moments(self.rows)

    def _count_outside(self) -> tuple[FloatArray, IntArray]:
        """Count the values of new rows that are outside the trained range.

        The first array (n,) has the proportion of each row's columns that are outside.
        The second array (m,) has the number of each column's rows that are outside.
        """
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


def _compare_clusters(old_sizes: IntArray, labels: IntArray) -> Iterator[ClusterDrift]:
    sizes = np.bincount(labels, minlength=len(old_sizes))
    old_sizes = np.pad(old_sizes, (0, len(sizes) - len(old_sizes)))
    n_old, n_now = int(old_sizes.sum()), int(sizes.sum())
    for cluster, n_rows in enumerate(sizes.tolist()):
        yield ClusterDrift(
            cluster=cluster,
            n_rows=n_rows,
            then=float(old_sizes[cluster]) / n_old if n_old else None,
            now=n_rows / n_now if n_now else 0.0,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NewRows:
    """New rows with their labels, in the order of their table.

    labels: int64 (n_rows,); -1 for rows that lack a required value.
    distances: float64 (n_rows,) or None; the distance of each row to the centre of its
        cluster, in the units in which the session compared rows; NaN for rows without a
        label. None if the party does not know the centres.
    centre_distances: float64 (n_rows, n_clusters) or None; the distance to each centre.
    uncertainty: float64 (n_rows,) or None; that of each label, from 0 to 1; see
        :class:`~clustering_protocols.contract.Placement`.
    memberships: float64 (n_rows, n_clusters) or None; only for mixtures.
    outside: float64 (n_rows,) or None; the proportion of each row's columns outside
        the trained range; NaN for rows without a label. None in a simulation.
    summary: statistics that describe no single row; None in a simulation, which does
        not store trained rows.
    ids, naming: the ids of the rows, and the names of the id columns.
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
        cls, placement: Placement, data: DataSource, comparison: Comparison | None
    ) -> NewRows:
        """Combine the placement of rows with their comparison to the trained rows."""
        outside = summary = None
        if comparison is not None:
            outside, summary = comparison.summarise(placement)
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
        """Write labels and figures, as CSV, Parquet or Excel by the extension."""
        return write_labels(
            Path(path), self.labels, self.ids, self.naming, self._columns
        )

    def encode(self, ending: str) -> bytes:
        """Return the bytes that :meth:`save` writes with this extension, e.g. .csv."""
        return encode_labels(ending, self.labels, self.ids, self.naming, self._columns)

    @property
    def _columns(self) -> Mapping[str, FloatArray]:
        columns = {
            "distance": self.distances,
            "uncertainty": self.uncertainty,
            "outside": self.outside,
        }
        return {name: values for name, values in columns.items() if values is not None}
