"""The sums from which a column group computes the profile of its clusters.

A *line* of a profile is a cluster, or several small clusters that are merged.

| sum | of each line | of each field |
|---|---|---|
| 1 | rows of each cluster, which determine the lines | |
| 2 | values of each number; rows of each level | the power of two that bounds all values |
| 3 | sums of values | |
| 4 | | the power of two that bounds all deviations from the line's mean |
| 5 | sums of squared deviations | |
| 6 | histograms on the grid | |

Every sum has room for as many lines as there are clusters, so that its size reveals
nothing. A line with too few values of a numeric field is excluded from sums 3 to 6 of
this field.

Histograms count values by the parts of each line's grid. A value *cut to the grid* is the
middle of its part; where every whole number has its own part, it is the number itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.profiles import NO_YES, SHARES
from clustering_protocols.numerics.round_numbers import round_down
from clustering_protocols.numerics.survival import BINS, count_events_and_censored
from clustering_protocols.records.arrays import (
    FloatArray,
    IntArray,
    MaskArray,
    WordArray,
)
from clustering_protocols.secrecy.fixed_point import FixedPoint
from clustering_protocols.shared_stages.statistics.powers import (
    PowerCounts,
    check_bound,
    powers_of_two,
    varies,
)
from clustering_protocols.terms.schema import Field, Schema


@dataclass(frozen=True)
class ProfileFields:
    """The fields of a column group, divided into numeric and categorical ones."""

    schema: Schema

    @cached_property
    def numeric(self) -> IntArray:
        """Return the indices (m,) of the numeric fields, dates included."""
        return np.flatnonzero([not level_labels(field) for field in self.schema.fields])

    @cached_property
    def categorical(self) -> IntArray:
        """Return the indices of the categorical fields, booleans included."""
        return np.flatnonzero([bool(level_labels(f)) for f in self.schema.fields])

    @cached_property
    def event_times(self) -> tuple[tuple[int, int], ...]:
        """Return pairs of indices: a time to an event, and the boolean of that event."""
        names = self.schema.names
        return tuple(
            (index, names.index(field.event))
            for index, field in enumerate(self.schema.fields)
            if field.event
        )

    @cached_property
    def level_ends(self) -> IntArray:
        """Return the index at which each categorical field's levels begin, and the end."""
        sizes = [len(level_labels(self.schema.fields[i])) for i in self.categorical]
        return np.cumsum([0, *sizes])

    @property
    def n_levels(self) -> int:
        """Return the number of levels of all categorical fields together."""
        return int(self.level_ends[-1])

    @cached_property
    def whole(self) -> MaskArray:
        """Return which of the numeric fields (m,) hold integers or dates."""
        kinds = [self.schema.fields[i].type for i in self.numeric]
        return np.array([kind != "number" for kind in kinds], dtype=np.bool_)

    @cached_property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the dictionary's bounds of the numeric fields (m,), possibly infinite."""
        bounds = [self.schema.fields[i].bounds for i in self.numeric]
        low, high = np.array(bounds, dtype=np.float64).reshape(-1, 2).T
        return low, high


def level_labels(field: Field) -> tuple[str, ...]:
    """Return the labels of a field's levels; empty for a numeric field."""
    return NO_YES if field.type == "boolean" else field.labels


PARTS: Final = 64
SIZE: Final = PARTS + 2
"""Counts per histogram; the first counts values below the grid, the last those above."""

_SPREADS: Final = 4.0


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The equal bins (*parts*) of the histogram of each line of a profile and each field.

    low, width: float64 (k, m); the lower end of each grid, and the width of its bins,
        which is 0 for a single value.
    whole: bool (m,); whether values are integers.
    """

    low: FloatArray
    width: FloatArray
    whole: MaskArray

    @classmethod
    def from_ends(cls, low: FloatArray, high: FloatArray, whole: MaskArray) -> Grid:
        """Return grids between these ends (k, m); NaN for a grid without any values."""
        low, high = np.where(whole, [np.floor(low), np.ceil(high)], [low, high])
        width = np.maximum(high - low, 0.0) / PARTS
        steps = np.maximum(np.ceil((high - low + 1.0) / PARTS), 1.0)
        return cls(low=low, width=np.where(whole, steps, width), whole=whole)

    def parts_of(self, values: FloatArray, line: IntArray) -> IntArray:
        """Return the bin of each value (n, m), from 0 to SIZE - 1; NaN is in bin 0.

        line: int64 (n,); the line of each row.
        """
        low, width = self.low[line], self.width[line]
        has_parts = width > 0
        position = np.floor((values - low) / np.where(has_parts, width, 1.0))
        last = (values == low + PARTS * width) & ~self.whole
        position = np.where(last, PARTS - 1, position)
        part = np.clip(np.where(has_parts, position, 0), -1, PARTS) + 1
        parts: IntArray = np.nan_to_num(part).astype(np.int64)
        return parts

    def centres(self, line: int, field: int) -> FloatArray:
        """Return the centres (SIZE,) of a field's bins; NaN for the first and the last."""
        width = self.width[line, field]
        half = (width - 1.0) / 2.0 if self.whole[field] else width / 2.0
        middles: FloatArray = (
            self.low[line, field] + width * np.arange(-1.0, PARTS + 1.0) + half
        )
        middles[[0, -1]] = np.nan
        return middles

    def is_exact(self, line: int, field: int) -> bool:
        """Return whether each value has a part of its own."""
        return bool(self.width[line, field] == float(self.whole[field]))


def choose_rounding_step(
    counts: IntArray, means: FloatArray, variances: FloatArray
) -> float:
    """Return the step to which means and spreads of a numeric field are rounded.

    It is the largest 1, 2 or 5 times a power of ten that is at most a twentieth of the
    field's spread, or of its absolute value if it is constant.
    """
    between, within = between_and_within_variances(counts, means, variances)
    spread = float((between + within) ** 0.5) or float(np.abs(means).max(initial=0.0))
    return round_down((spread or 1.0) / SHARES)  # the same at all members


def between_and_within_variances(
    counts: IntArray, means: FloatArray, variances: FloatArray
) -> tuple[float, float]:
    """Return a field's variance between lines, and its mean variance within lines."""
    if not counts.sum():
        return 0.0, 0.0
    weights = counts / counts.sum()
    means, variances = means.reshape(len(means), -1), variances.reshape(len(means), -1)
    between = float((weights @ np.square(means - weights @ means)).sum())
    return between, float((weights @ variances).sum())


def grid_quantile(counts: IntArray, middles: FloatArray, q: float) -> float:
    """Return the q-quantile of binned values, interpolated linearly as in NumPy.

    counts: int64 (SIZE,); the number of values in each bin, at least one in all.
    middles: float64 (SIZE,); the centres of the bins.

    Returns NaN if the quantile lies outside the grid.
    """
    ends, position = np.cumsum(counts), (int(counts.sum()) - 1) * q
    below, above = (
        middles[np.searchsorted(ends, rank, side="right")]
        for rank in (np.floor(position), np.ceil(position))
    )
    return float(below + (above - below) * (position - np.floor(position)))


def find_smallest(sizes: IntArray, smallest: int) -> IntArray:
    """Return the indices of all items with fewer than ``smallest`` rows.

    If there are any, the next smallest items are added until they have ``smallest``
    rows together, and so are at least two, or no item is left.
    """
    ascending, totals = np.argsort(sizes, kind="stable"), np.cumsum(np.sort(sizes))
    n = int(np.count_nonzero(sizes < smallest))
    while 0 < n < len(sizes) and totals[n - 1] < smallest:
        n += 1
    return ascending[:n]


@dataclass(frozen=True, slots=True)
class ProfileLines:
    """The lines of a profile: one for each cluster, then one for all small clusters.

    clusters: the labels of clusters with a line of their own, ascending.
    others: the labels of the clusters that are merged into the last line; may be empty.
    """

    clusters: tuple[int, ...]
    others: tuple[int, ...]

    @classmethod
    def from_sizes(cls, sizes: IntArray, smallest: int) -> ProfileLines:
        """Return the lines for clusters with ``sizes`` (k,) rows.

        Clusters with fewer than ``smallest`` rows share one line. As long as this line
        has a single cluster or too few rows, the next smallest cluster is added to it,
        because anyone who knows the total could otherwise compute it from the other
        lines. There are no lines if there are too few rows in all.
        """
        nonempty = np.flatnonzero(sizes)
        small = nonempty[find_smallest(sizes[nonempty], smallest)]
        if len(small) and sizes[small].sum() < smallest:
            return cls((), ())
        large = np.setdiff1d(nonempty, small)
        return cls(tuple(large.tolist()), tuple(sorted(small.tolist())))

    def __len__(self) -> int:
        return len(self.clusters) + bool(self.others)

    def line_by_cluster(self, n_clusters: int) -> IntArray:
        """Return the number of the line of each cluster (k,), or -1 if it has none."""
        lines = np.full(n_clusters, -1, dtype=np.int64)
        lines[list(self.clusters)] = np.arange(len(self.clusters))
        lines[list(self.others)] = len(self.clusters)
        return lines


N_SUMS: Final = 6
SIZES, COUNTS, VALUES, DEVIATIONS, SQUARES, HISTOGRAMS = range(1, N_SUMS + 1)
POWERS: Final = PowerCounts()
_MOST_PARTS: Final = 1 << 23


def sum_size(fields: ProfileFields, n_clusters: int, sum_number: int) -> int:
    """Return the number of elements that each party contributes to a sum."""
    m, cells = len(fields.numeric), n_clusters * len(fields.numeric)
    return {
        SIZES: n_clusters,
        COUNTS: cells + n_clusters * fields.n_levels + m * POWERS.n_words,
        VALUES: cells,
        DEVIATIONS: m * POWERS.n_words,
        SQUARES: cells,
        HISTOGRAMS: cells * SIZE * has_histograms(fields, n_clusters)
        + n_clusters * len(fields.event_times) * 2 * BINS,
    }[sum_number]


def has_histograms(fields: ProfileFields, n_clusters: int) -> bool:
    """Return whether the histograms are small enough to be added up."""
    return n_clusters * len(fields.numeric) * SIZE <= _MOST_PARTS


@dataclass(frozen=True, eq=False)
class ProfileTotals:
    """The totals of the sums so far, and the values derived from them.

    n_rows, n_members: the numbers of rows and of members of the column group.
    smallest: the smallest number of rows of a line.
    sums: tuple of int64 arrays, one for each total.
    describes: whether nothing is clustered; the grid then has the dictionary's ranges.
    """

    fields: ProfileFields
    n_clusters: int
    n_rows: int
    n_members: int
    smallest: int
    sums: tuple[IntArray, ...] = ()
    describes: bool = False

    def with_sum(self, total: IntArray) -> ProfileTotals:
        """Return a copy with one more total."""
        return replace(self, sums=(*self.sums, total))

    @cached_property
    def cluster_sizes(self) -> IntArray:
        """Return the number of rows (k,) of each cluster."""
        return self.sums[SIZES - 1]

    @cached_property
    def lines(self) -> ProfileLines:
        """Return the lines of the profile, determined by the sizes of the clusters."""
        return ProfileLines.from_sizes(self.cluster_sizes, self.smallest)

    @cached_property
    def line_rows(self) -> IntArray:
        """Return the number of rows (k,) of each line, with zeros after the last line."""
        line = self.lines.line_by_cluster(self.n_clusters)
        n_rows = np.zeros(self.n_clusters, dtype=np.int64)
        np.add.at(n_rows, line[line >= 0], self.cluster_sizes[line >= 0])
        return n_rows

    @cached_property
    def counts(self) -> IntArray:
        """Return the number of values (k, m) of each numeric field in each line."""
        cells = self.n_clusters * len(self.fields.numeric)
        return self.sums[COUNTS - 1][:cells].reshape(self.n_clusters, -1)

    @cached_property
    def level_counts(self) -> IntArray:
        """Return the number of rows (k, n_levels) with each level in each line."""
        begin = self.n_clusters * len(self.fields.numeric)
        end = begin + self.n_clusters * self.fields.n_levels
        return self.sums[COUNTS - 1][begin:end].reshape(self.n_clusters, -1)

    @cached_property
    def power_counts(self) -> IntArray:
        """Return the encoded counts of powers of two; see :class:`PowerCounts`."""
        begin = self.n_clusters * (len(self.fields.numeric) + self.fields.n_levels)
        return self.sums[COUNTS - 1][begin:]

    @cached_property
    def has_enough_values(self) -> MaskArray:
        """Return whether each line has enough values of each numeric field (k, m)."""
        return self.counts >= self.smallest

    @cached_property
    def value_bound(self) -> FloatArray:
        """Return the power of two (m,) that bounds all values of each numeric field."""
        return powers_of_two(POWERS.largest_powers(self.power_counts))

    @cached_property
    def value_units(self) -> FixedPoint:
        """Return the fixed-point encoding of the sums of values (k, m)."""
        return FixedPoint.of(np.maximum(self.counts, 1) * self.value_bound)

    @cached_property
    def means(self) -> FloatArray:
        """Return the mean (k, m) of each numeric field in each line; 0 if not shown."""
        total = self._decode_sums(VALUES, self.value_units)
        return np.where(self.has_enough_values, total / np.maximum(self.counts, 1), 0.0)

    @cached_property
    def deviation_bound(self) -> FloatArray:
        """Return the power of two (m,) that bounds all deviations from a line's mean."""
        return powers_of_two(POWERS.largest_powers(self.sums[DEVIATIONS - 1]))

    @cached_property
    def square_units(self) -> FixedPoint:
        """Return the fixed-point encoding of the sums of squared deviations (k, m)."""
        largest = np.square(self.deviation_bound)
        return FixedPoint.of(np.maximum(self.counts, 1) * largest)

    @cached_property
    def spreads(self) -> FloatArray:
        """Return the standard deviation (k, m) of each numeric field in each line."""
        total = self._decode_sums(SQUARES, self.square_units)
        varying = varies(total, self.counts, self.means, self.value_units.unit)
        squares = np.where(self.has_enough_values & varying, total, 0.0)
        return np.sqrt(squares / np.maximum(self.counts, 1))

    def _decode_sums(self, sum_number: int, units: FixedPoint) -> FloatArray:
        words = self.sums[sum_number - 1].view(np.uint64)
        return units.decode(words.reshape(self.n_clusters, -1))

    @cached_property
    def grid(self) -> Grid:
        """Return the grid of the histograms of the numeric fields.

        The grid reaches four standard deviations to each side of a line's mean, within
        the dictionary's bounds. If nothing is clustered, the grid covers the
        dictionary's ranges, and so does not depend on any rows; a field without a range
        has no grid.
        """
        low, high = self.fields.bounds
        if self.describes:
            has_range = np.isfinite(low) & np.isfinite(high)
            ends = np.where(has_range, [low, high], np.nan)
            return Grid.from_ends(ends[:1], ends[1:], self.fields.whole)
        step = self.steps
        spread = np.maximum(np.rint(self.spreads / step), self.spreads > 0) * step
        mean = np.where(spread > 0, np.rint(self.means / step) * step, self.means)
        low = np.maximum(mean - _SPREADS * spread, low)
        high = np.minimum(mean + _SPREADS * spread, high)
        return Grid.from_ends(low, high, self.fields.whole)

    @cached_property
    def steps(self) -> FloatArray:
        """Return the steps (m,) to which means and standard deviations are rounded.

        The ends of grids are computed from means and standard deviations that are
        rounded to the same steps, so that quartiles disclose no finer digits of means.
        """
        shown = self.has_enough_values
        return np.array(
            [
                choose_rounding_step(
                    self.counts[shown[:, i], i],
                    self.means[shown[:, i], i],
                    np.square(self.spreads[shown[:, i], i]),
                )
                for i in range(len(self.fields.numeric))
            ]
        )

    @cached_property
    def histograms(self) -> IntArray | None:
        """Return the histograms (k, m, SIZE), or None if they would be too large."""
        if not has_histograms(self.fields, self.n_clusters):
            return None
        cells = self.n_clusters * len(self.fields.numeric)
        return self.sums[HISTOGRAMS - 1][: cells * SIZE].reshape(
            self.n_clusters, -1, SIZE
        )

    @cached_property
    def survival(self) -> IntArray:
        """Return the numbers of events and censored rows (times, k, 2, BINS)."""
        shape = (len(self.fields.event_times), self.n_clusters, 2, BINS)
        counts = self.sums[HISTOGRAMS - 1]
        return counts[len(counts) - math.prod(shape) :].reshape(shape)

    def fits_next_sum(self, words: WordArray) -> bool:
        """Return whether a total is possible for the next sum, given the earlier ones."""
        total = words.view(np.int64)
        totals, sum_number = self.with_sum(total), len(self.sums) + 1
        if sum_number == SIZES:
            return _are_counts(total, np.array(self.n_rows))
        if sum_number == COUNTS:
            rows, counts, levels = totals.line_rows, totals.counts, totals.level_counts
            return (
                bool(((counts >= 0) & (counts <= rows[:, None])).all())
                and all(
                    _are_counts(levels[:, begin:end], rows)
                    for begin, end in pairwise(totals.fields.level_ends.tolist())
                )
                and POWERS.fits(totals.power_counts, totals.n_members)
            )
        if sum_number == DEVIATIONS:
            return POWERS.fits(total, self.n_members)
        if sum_number == HISTOGRAMS:
            survival = totals.survival.reshape(-1, self.n_clusters, 2 * BINS)
            if not all(_are_counts(counts, self.line_rows) for counts in survival):
                return False
            histograms = totals.histograms
            if histograms is None:
                return True
            expected = np.where(self.has_enough_values, self.counts, 0)
            return (
                _are_counts(histograms, expected)
                and (histograms.sum(axis=2) == expected).all().item()
            )
        units = self.value_units if sum_number == VALUES else self.square_units
        return units.fits(words.reshape(self.n_clusters, -1)) and (
            sum_number == VALUES or bool((total >= 0).all())
        )


def _are_counts(numbers: IntArray, limits: IntArray) -> bool:
    """Return whether counts are valid, and their sums over the last axis within limits."""
    small = bool(((numbers >= 0) & (numbers <= limits[..., None])).all())
    return small and bool((numbers.sum(axis=-1) <= limits).all())


def own_share(totals: ProfileTotals, data: DataSource, labels: IntArray) -> IntArray:
    """Return the numbers that a party contributes to the next sum.

    data: rows (n, fields) in the units of the dictionary; NaN is a missing value.
    labels: int64 (n,); -1 for rows without a cluster.

    Raises InvalidData if a value is too large to be squared and added up.
    Raises ProtocolFailed if the earlier totals contradict the rows of this party.
    """
    return _SHARES[len(totals.sums) + 1](totals, data, labels)


def _iter_line_values(
    totals: ProfileTotals, data: DataSource, labels: IntArray
) -> Iterator[tuple[IntArray, FloatArray, MaskArray]]:
    """Yield the lines (n,) of rows, their values (n, m), and which values count."""
    for line, rows in _iter_line_rows(totals, data, labels):
        values = rows[:, totals.fields.numeric]
        counts = totals.has_enough_values[line] & ~np.isnan(values)
        yield line, np.where(counts, values, 0.0), counts


def _iter_line_rows(
    totals: ProfileTotals, data: DataSource, labels: IntArray
) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield batches of rows that belong to a line, each with the lines of its rows."""
    line_of, begin = np.append(totals.lines.line_by_cluster(totals.n_clusters), -1), 0
    for rows in data.batches():
        line = line_of[labels[begin : begin + len(rows)]]
        begin += len(rows)
        yield line[line >= 0], rows[line >= 0]


def _count_values_and_powers(
    totals: ProfileTotals, data: DataSource, labels: IntArray
) -> IntArray:
    fields, k = totals.fields, totals.n_clusters
    counts = np.zeros((k, len(fields.numeric)), dtype=np.int64)
    levels = np.zeros((k, fields.n_levels), dtype=np.int64)
    largest = np.zeros(len(fields.numeric))
    for line, rows in _iter_line_rows(totals, data, labels):
        values = rows[:, fields.numeric]
        _add_by_line(counts, line, ~np.isnan(values))
        _update_largest(largest, np.abs(np.nan_to_num(values)))
        for index, begin in zip(fields.categorical, fields.level_ends, strict=False):
            has_level = ~np.isnan(rows[:, index])
            level = begin + rows[has_level, index].astype(np.int64)
            np.add.at(levels, (line[has_level], level), 1)
    powers = _count_powers(largest, totals)
    return np.concatenate([counts.ravel(), levels.ravel(), powers])


def _sum_values(totals: ProfileTotals, data: DataSource, labels: IntArray) -> IntArray:
    """Add values in whole units, because sums of floats would be too inexact."""
    total = np.zeros((totals.n_clusters, len(totals.fields.numeric)), dtype=np.int64)
    for line, values, _ in _iter_line_values(totals, data, labels):
        check_bound(values, totals.value_bound)
        units = np.rint(values * totals.value_units.unit[line]).astype(np.int64)
        np.add.at(total, line, units)
    return total.ravel()


def _deviations(totals: ProfileTotals, data: DataSource, labels: IntArray) -> IntArray:
    largest = np.zeros(len(totals.fields.numeric))
    for line, values, counts in _iter_line_values(totals, data, labels):
        deviations = np.where(counts, values - totals.means[line], 0.0)
        _update_largest(largest, np.abs(deviations))
    return _count_powers(largest, totals)


def _sum_squares(totals: ProfileTotals, data: DataSource, labels: IntArray) -> IntArray:
    total = np.zeros((totals.n_clusters, len(totals.fields.numeric)))
    for line, values, counts in _iter_line_values(totals, data, labels):
        deviations = np.where(counts, values - totals.means[line], 0.0)
        check_bound(deviations, totals.deviation_bound)
        _add_by_line(total, line, np.square(deviations))
    return totals.square_units.encode(total).view(np.int64).ravel()


def _count_bins(totals: ProfileTotals, data: DataSource, labels: IntArray) -> IntArray:
    fields, k, m = totals.fields, totals.n_clusters, len(totals.fields.numeric)
    survival = np.zeros((len(fields.event_times), k, 2, BINS), dtype=np.int64)
    if fields.event_times:
        for line, rows in _iter_line_rows(totals, data, labels):
            for number, (index, event) in enumerate(fields.event_times):
                limit = fields.schema.fields[index].bounds[1]
                survival[number] += count_events_and_censored(
                    rows[:, index], rows[:, event], line, limit, k
                )
    if not has_histograms(fields, k):
        return survival.ravel()
    histograms = np.zeros(k * m * SIZE, dtype=np.int64)
    for line, values, counts in _iter_line_values(totals, data, labels):
        part = (line[:, None] * m + np.arange(m)) * SIZE + totals.grid.parts_of(
            values, line
        )
        histograms += np.bincount(part[counts], minlength=histograms.size)
    return np.concatenate([histograms, survival.ravel()])


_SHARES: Final[
    Mapping[int, Callable[[ProfileTotals, DataSource, IntArray], IntArray]]
] = {
    SIZES: lambda totals, _, labels: np.bincount(
        labels[labels >= 0], minlength=totals.n_clusters
    ),
    COUNTS: _count_values_and_powers,
    VALUES: _sum_values,
    DEVIATIONS: _deviations,
    SQUARES: _sum_squares,
    HISTOGRAMS: _count_bins,
}


def _add_by_line(
    total: NDArray[np.float64] | NDArray[np.int64],
    line: IntArray,
    values: NDArray[np.float64] | NDArray[np.bool_],
) -> None:
    """Add the values (n, m) to the totals (k, m) of their lines, in place."""
    for column in range(values.shape[1]):
        sums = np.bincount(line, values[:, column], minlength=len(total))
        total[:, column] += sums.astype(total.dtype)


def _update_largest(largest: FloatArray, magnitudes: FloatArray) -> None:
    np.maximum(largest, magnitudes.max(axis=0, initial=0.0), out=largest)


def _count_powers(largest: FloatArray, totals: ProfileTotals) -> IntArray:
    """Return a one at the power of two that bounds the values of each numeric field."""
    schema = totals.fields.schema
    return POWERS.count(largest, [schema.names[i] for i in totals.fields.numeric])
