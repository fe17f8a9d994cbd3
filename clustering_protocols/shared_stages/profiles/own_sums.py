"""A party's own share of each sum, in one pass over its rows; a profile of these alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.profiles import Profile
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.secrecy.fixed_point import FixedPoint
from clustering_protocols.shared_stages.profiles import totals
from clustering_protocols.shared_stages.profiles.profile import profile_of
from clustering_protocols.shared_stages.profiles.totals import (
    N_SUMS,
    POWERS,
    SIZE,
    ProfileFields,
    ProfileTotals,
)
from clustering_protocols.shared_stages.statistics.powers import check_bound
from clustering_protocols.terms.schema import Schema


def share_of(known: ProfileTotals, data: DataSource, labels: IntArray) -> IntArray:
    """Return the numbers that a party adds to the next sum.

    data: rows (n, fields) as the dictionary describes them, NaN where there is no
        value.
    labels: int64 (n,); -1 for rows of no cluster.

    Raises InvalidData if a value is too large to be squared and added up.
    Raises ProtocolFailed if what is known cannot be: it lacks what this party has
        added.
    """
    which = len(known.sums) + 1
    if which == totals.SIZES:
        return np.bincount(labels[labels >= 0], minlength=known.n_clusters)
    return _PASSES[which](known, data, labels)


def _numbers(
    known: ProfileTotals, data: DataSource, labels: IntArray
) -> Iterator[tuple[IntArray, FloatArray, NDArray[np.bool_]]]:
    """Yield line (n,), numbers (n, m) and which of them are there and count (n, m)."""
    for line, rows in _lines(known, data, labels):
        values = rows[:, known.fields.numbers]
        counted = known.has_enough_values[line] & ~np.isnan(values)
        yield line, np.where(counted, values, 0.0), counted


def _lines(
    known: ProfileTotals, data: DataSource, labels: IntArray
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield the rows that are in a line, with its number."""
    line_of, begin = np.append(known.lines.line_of(known.n_clusters), -1), 0
    for rows in data.batches():
        line = line_of[labels[begin : begin + len(rows)]]
        begin += len(rows)
        yield line[line >= 0], rows[line >= 0]


def _counts(known: ProfileTotals, data: DataSource, labels: IntArray) -> IntArray:
    """Return how many values and levels there are, and how large values are."""
    fields, k = known.fields, known.n_clusters
    counts = np.zeros((k, len(fields.numbers)), dtype=np.int64)
    levels = np.zeros((k, fields.n_levels), dtype=np.int64)
    largest = np.zeros(len(fields.numbers))
    for line, rows in _lines(known, data, labels):
        values = rows[:, fields.numbers]
        _add_by_line(counts, line, ~np.isnan(values))
        _fold(largest, np.abs(np.nan_to_num(values)))
        for place, begin in zip(fields.categories, fields.ends, strict=False):
            there = ~np.isnan(rows[:, place])
            column = begin + rows[there, place].astype(np.int64)
            np.add.at(levels, (line[there], column), 1)
    powers = _powers(largest, known)
    return np.concatenate([counts.ravel(), levels.ravel(), powers])


def _values(known: ProfileTotals, data: DataSource, labels: IntArray) -> IntArray:
    """Return the sums of values."""
    total = np.zeros((known.n_clusters, len(known.fields.numbers)))
    for line, values, _ in _numbers(known, data, labels):
        check_bound(values, known.largest)
        _add_by_line(total, line, values)
    return _encode_totals(total, known.value_units)


def _deviations(known: ProfileTotals, data: DataSource, labels: IntArray) -> IntArray:
    """Return how far values are from the means of their lines."""
    largest = np.zeros(len(known.fields.numbers))
    for line, values, counted in _numbers(known, data, labels):
        _fold(largest, np.abs(np.where(counted, values - known.means[line], 0.0)))
    return _powers(largest, known)


def _squares(known: ProfileTotals, data: DataSource, labels: IntArray) -> IntArray:
    """Return the sums of squared deviations."""
    total = np.zeros((known.n_clusters, len(known.fields.numbers)))
    for line, values, counted in _numbers(known, data, labels):
        deviations = np.where(counted, values - known.means[line], 0.0)
        check_bound(deviations, known.largest_deviation)
        _add_by_line(total, line, np.square(deviations))
    return _encode_totals(total, known.square_units)


def _histograms(known: ProfileTotals, data: DataSource, labels: IntArray) -> IntArray:
    """Return how many values lie in each part of the grid."""
    if not totals.has_histograms(known.fields, known.n_clusters):
        return np.empty(0, dtype=np.int64)
    m = len(known.fields.numbers)
    found = np.zeros((known.n_clusters, m, SIZE), dtype=np.int64)
    for line, values, counted in _numbers(known, data, labels):
        cell = (line[:, None] * m + np.arange(m)) * SIZE + known.grid.part(values)
        found += np.bincount(cell[counted], minlength=found.size).reshape(found.shape)
    return found.ravel()


_PASSES: Final[
    Mapping[int, Callable[[ProfileTotals, DataSource, IntArray], IntArray]]
] = {
    totals.COUNTS: _counts,
    totals.VALUES: _values,
    totals.DEVIATIONS: _deviations,
    totals.SQUARES: _squares,
    totals.HISTOGRAMS: _histograms,
}


def _add_by_line(
    total: NDArray[np.float64] | NDArray[np.int64],
    line: IntArray,
    values: NDArray[np.float64] | NDArray[np.bool_],
) -> None:
    """Add values (n, m) to the totals (k, m) of their lines, in place."""
    for column in range(values.shape[1]):
        added = np.bincount(line, values[:, column], minlength=len(total))
        total[:, column] += added.astype(total.dtype)


def _fold(largest: FloatArray, magnitudes: FloatArray) -> None:
    np.maximum(largest, magnitudes.max(axis=0, initial=0.0), out=largest)


def _powers(largest: FloatArray, known: ProfileTotals) -> IntArray:
    """Return, for each number, a one at the power of two that bounds it."""
    schema = known.fields.schema
    return POWERS.count(largest, [schema.names[i] for i in known.fields.numbers])


def _encode_totals(total: FloatArray, units: FixedPoint) -> IntArray:
    return units.encode(total).view(np.int64).ravel()


def own_profile(
    schema: Schema, data: DataSource, labels: IntArray, column: int, smallest: int
) -> Profile:
    """Return what the clusters are like over the rows of one party.

    data: as the dictionary describes them, before anything is filled or scaled.
    labels: int64 (n_rows,); -1 for rows that are left out.
    column: the column group.
    smallest: clusters with fewer of these rows are one line together.
    """
    known = ProfileTotals(
        fields=ProfileFields(schema),
        n_clusters=1 + int(labels.max(initial=0)),
        n_rows=data.n_rows,
        n_members=1,
        smallest=smallest,
    )
    for _ in range(N_SUMS):
        known = known.with_sum(share_of(known, data, labels))
    return profile_of(known, column, own=True, rounded=False)
