"""What a column group adds up about its clusters, sum after sum.

| sum | of each line | of each field |
|---|---|---|
| 1 | rows of each cluster, from which the lines follow | |
| 2 | values of each number; rows of each level | the power of two that bounds all values |
| 3 | sums of values | |
| 4 | | the power of two that bounds all deviations from the line's mean |
| 5 | sums of squared deviations | |
| 6 | histograms on the grid | |

Every sum has room for as many lines as there are clusters, so that its size tells
nothing. Of fewer values than a line needs rows nothing is added to sums 3 to 6.

A histogram of these parts is what parties add up. A value *cut to the grid* is the middle
of its part, and of whole numbers that have a part each, the number itself.
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
from clustering_protocols.numerics.profiles import NO_YES
from clustering_protocols.numerics.survival import BINS, count_rows
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.secrecy.fixed_point import FixedPoint
from clustering_protocols.shared_stages.statistics.powers import (
    PowerCounts,
    bound_of,
    check_bound,
    varies,
)
from clustering_protocols.terms.schema import Field, Schema


@dataclass(frozen=True)
class ProfileFields:
    """The fields of one column group."""

    schema: Schema

    @cached_property
    def numbers(self) -> IntArray:
        """Return the places of numbers and dates (m,)."""
        return self._places(levels=False)

    @cached_property
    def categories(self) -> IntArray:
        """Return the places of fields with levels, yes and no among them."""
        return self._places(levels=True)

    def _places(self, *, levels: bool) -> IntArray:
        fields = enumerate(self.schema.fields)
        found = [i for i, each in fields if bool(levels_of(each)) == levels]
        return np.array(found, dtype=np.int64)

    @cached_property
    def times(self) -> tuple[tuple[int, int], ...]:
        """Return the places of times to an event, and of the yes or no of each."""
        names = self.schema.names
        return tuple(
            (place, names.index(each.event))
            for place, each in enumerate(self.schema.fields)
            if each.event
        )

    @cached_property
    def ends(self) -> IntArray:
        """Return where the levels of each category end, side by side."""
        sizes = [len(levels_of(self.schema.fields[i])) for i in self.categories]
        return np.cumsum([0, *sizes])

    @property
    def n_levels(self) -> int:
        """Return how many levels all categories have together."""
        return int(self.ends[-1])

    @cached_property
    def whole(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return which of the numbers (m,) are integers or days."""
        kinds = [self.schema.fields[i].type for i in self.numbers]
        return np.array([kind != "number" for kind in kinds], dtype=np.bool_)

    @cached_property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return least and greatest value of the numbers (m,), as the dictionary says.

        Infinite where it says nothing.
        """
        found = [self.schema.fields[i].bounds for i in self.numbers]
        low, high = np.array(found, dtype=np.float64).reshape(-1, 2).T
        return low, high


def levels_of(field: Field) -> tuple[str, ...]:
    """Return how people call the levels of a field; none of a number."""
    return NO_YES if field.type == "boolean" else field.labels


PARTS: Final = 64
SIZE: Final = PARTS + 2
"""Of a histogram: what lies below comes first, what lies above last."""

_SPREADS: Final = 4.0
_DIGITS: Final = 9
"""Significant digits of a grid's ends: all members compute the same."""


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Where the parts of each field begin, and how wide they are.

    low, width: float64 (m,); a width of 0 is of a field with one value alone.
    whole: bool (m,).
    """

    low: FloatArray
    width: FloatArray
    whole: np.ndarray[tuple[int], np.dtype[np.bool_]]

    @classmethod
    def of(
        cls,
        mean: FloatArray,
        spread: FloatArray,
        bounds: tuple[FloatArray, FloatArray],
        whole: np.ndarray[tuple[int], np.dtype[np.bool_]],
    ) -> Grid:
        """Return the grid of fields with mean and spread (m,) over all lines.

        It reaches four spreads to both sides, as far as the dictionary's bounds.
        """
        low = np.maximum(_round_digits(mean - _SPREADS * spread), bounds[0])
        high = np.minimum(_round_digits(mean + _SPREADS * spread), bounds[1])
        return cls._between(low, high, whole)

    @classmethod
    def of_ranges(
        cls,
        bounds: tuple[FloatArray, FloatArray],
        whole: np.ndarray[tuple[int], np.dtype[np.bool_]],
    ) -> Grid:
        """Return the grid of the dictionary's ranges: it says nothing of any row.

        Nothing lies within the grid of a field that has no range.
        """
        low, high = bounds
        given = np.isfinite(low) & np.isfinite(high)
        ends = np.where(given, [low, high], np.nan)
        return cls._between(ends[0], ends[1], whole)

    @classmethod
    def _between(
        cls,
        low: FloatArray,
        high: FloatArray,
        whole: np.ndarray[tuple[int], np.dtype[np.bool_]],
    ) -> Grid:
        low, high = np.where(whole, [np.floor(low), np.ceil(high)], [low, high])
        width = np.maximum(high - low, 0.0) / PARTS
        steps = np.maximum(np.ceil((high - low + 1.0) / PARTS), 1.0)
        return cls(low=low, width=np.where(whole, steps, width), whole=whole)

    def part(self, values: FloatArray) -> IntArray:
        """Return the number of the part of each value (n, m), from 0 to SIZE - 1.

        A value that is NaN is in the first.
        """
        several = self.width > 0
        position = np.floor((values - self.low) / np.where(several, self.width, 1.0))
        last = (values == self.low + PARTS * self.width) & ~self.whole  # the upper end
        position = np.where(last, PARTS - 1, position)
        part = np.clip(np.where(several, position, 0), -1, PARTS) + 1
        found: IntArray = np.nan_to_num(part).astype(np.int64)
        return found

    def middles(self, field: int) -> FloatArray:
        """Return the value (SIZE,) for which each part stands; NaN beyond the ends."""
        width = self.width[field]
        within = (width - 1.0) / 2.0 if self.whole[field] else width / 2.0
        found: FloatArray = (
            self.low[field] + width * np.arange(-1.0, PARTS + 1.0) + within
        )
        found[[0, -1]] = np.nan
        return found


def _round_digits(values: FloatArray) -> FloatArray:
    scale = 10.0 ** (
        _DIGITS - 1 - np.floor(np.log10(np.maximum(np.abs(values), 1e-300)))
    )
    return np.rint(values * scale) / scale


def quantile(counts: IntArray, middles: FloatArray, q: float) -> float:
    """Return the q-quantile of values cut to a grid, as NumPy's default computes it.

    counts: int64 (SIZE,); how many values each part has; at least one in all.
    middles: float64 (SIZE,).

    Returns float: NaN where the grid does not reach it.
    """
    ends, place = np.cumsum(counts), (int(counts.sum()) - 1) * q
    below, above = (
        middles[np.searchsorted(ends, rank, side="right")]
        for rank in (np.floor(place), np.ceil(place))
    )
    return float(below + (above - below) * (place - np.floor(place)))


@dataclass(frozen=True, slots=True)
class ProfileLines:
    """The lines of a profile: a cluster each, then small ones together.

    clusters: labels with a line of their own, ascending.
    others: labels of the last line; none where there is no such line.
    """

    clusters: tuple[int, ...]
    others: tuple[int, ...]

    @classmethod
    def of(cls, sizes: IntArray, smallest: int) -> ProfileLines:
        """Return the lines of clusters with ``sizes`` (k,) rows.

        Clusters of fewer than ``smallest`` rows are one line; and with them, while they
        are one alone or have fewer rows together, the next smallest: anyone who knows the
        whole could else take all other lines off it. There is no line at all where all
        rows together are too few.
        """
        ascending = [int(c) for c in np.argsort(sizes, kind="stable") if sizes[c] > 0]
        n_small = int(np.count_nonzero((sizes > 0) & (sizes < smallest)))
        while n_small and n_small < len(ascending):
            together = int(sizes[ascending[:n_small]].sum())
            if n_small > 1 and together >= smallest:
                break
            n_small += 1
        others = ascending[:n_small]
        if others and int(sizes[others].sum()) < smallest:
            return cls((), ())
        left = [c for c in ascending if c not in others]
        return cls(tuple(sorted(left)), tuple(sorted(others)))

    def __len__(self) -> int:
        return len(self.clusters) + bool(self.others)

    def line_of(self, n_clusters: int) -> IntArray:
        """Return the number of the line of each cluster (k,); -1 for those with none."""
        found = np.full(n_clusters, -1, dtype=np.int64)
        found[list(self.clusters)] = np.arange(len(self.clusters))
        found[list(self.others)] = len(self.clusters)
        return found


N_SUMS: Final = 6
SIZES, COUNTS, VALUES, DEVIATIONS, SQUARES, HISTOGRAMS = range(1, N_SUMS + 1)
POWERS: Final = PowerCounts()
_MOST_PARTS: Final = 1 << 23


def n_numbers(fields: ProfileFields, n_clusters: int, which: int) -> int:
    """Return how many numbers a sum has."""
    m, cells = len(fields.numbers), n_clusters * len(fields.numbers)
    return {
        SIZES: n_clusters,
        COUNTS: cells + n_clusters * fields.n_levels + m * POWERS.size,
        VALUES: cells,
        DEVIATIONS: m * POWERS.size,
        SQUARES: cells,
        HISTOGRAMS: cells * SIZE * has_histograms(fields, n_clusters)
        + n_clusters * len(fields.times) * 2 * BINS,
    }[which]


def has_histograms(fields: ProfileFields, n_clusters: int) -> bool:
    """Return whether quartiles are asked for: of very many fields they are not."""
    return n_clusters * len(fields.numbers) * SIZE <= _MOST_PARTS


@dataclass(frozen=True, eq=False)
class ProfileTotals:
    """What is known after so many sums.

    n_clusters, n_rows, n_members, smallest: clusters of the partition; rows and members
        of the column group; the fewest rows of a line.
    describes: whether nothing is clustered: histograms have the dictionary's ranges.
    sums: tuple of int64 arrays.
    """

    fields: ProfileFields
    n_clusters: int
    n_rows: int
    n_members: int
    smallest: int
    sums: tuple[IntArray, ...] = ()
    describes: bool = False

    def with_sum(self, total: IntArray) -> ProfileTotals:
        """Return what is known with one more sum."""
        return replace(self, sums=(*self.sums, total))

    @cached_property
    def sizes(self) -> IntArray:
        """Return the rows of each cluster (k,)."""
        return self.sums[SIZES - 1]

    @cached_property
    def lines(self) -> ProfileLines:
        """Return which clusters have a line."""
        return ProfileLines.of(self.sizes, self.smallest)

    @cached_property
    def line_rows(self) -> IntArray:
        """Return the rows of each line (k,), 0 of those that there are not."""
        line = self.lines.line_of(self.n_clusters)
        found = np.zeros(self.n_clusters, dtype=np.int64)
        np.add.at(found, line[line >= 0], self.sizes[line >= 0])
        return found

    @cached_property
    def _second(self) -> tuple[IntArray, IntArray, IntArray]:
        k, m = self.n_clusters, len(self.fields.numbers)
        cells, levels = k * m, k * self.fields.n_levels
        counts, levels_, powers = np.split(
            self.sums[COUNTS - 1], [cells, cells + levels]
        )
        return (
            counts.reshape(k, m),
            levels_.reshape(k, -1),
            powers.reshape(m, POWERS.size),
        )

    @property
    def counts(self) -> IntArray:
        """Return the values of each line and number (k, m)."""
        return self._second[0]

    @property
    def levels(self) -> IntArray:
        """Return the rows of each line that have each level (k, n_levels)."""
        return self._second[1]

    @property
    def powers(self) -> IntArray:
        """Return how many members' values each power of two bounds (m, powers)."""
        return self._second[2]

    @cached_property
    def has_enough_values(self) -> NDArray[np.bool_]:
        """Return which lines have values enough of which number (k, m)."""
        return self.counts >= self.smallest

    @cached_property
    def largest(self) -> FloatArray:
        """Return the power of two that bounds the values of each number (m,)."""
        return bound_of(POWERS.largest(self.powers))

    @cached_property
    def value_units(self) -> FixedPoint:
        """Return how sums of values stand in the ring (k, m)."""
        return FixedPoint.of(np.maximum(self.counts, 1) * self.largest)

    @cached_property
    def means(self) -> FloatArray:
        """Return the mean of each line and number (k, m), 0 where it is not told."""
        total = self._decode_sums(VALUES, self.value_units)
        return np.where(self.has_enough_values, total / np.maximum(self.counts, 1), 0.0)

    @cached_property
    def largest_deviation(self) -> FloatArray:
        """Return the power of two that bounds deviations of each number (m,)."""
        return bound_of(POWERS.largest(self.sums[DEVIATIONS - 1]))

    @cached_property
    def square_units(self) -> FixedPoint:
        """Return how sums of squared deviations stand in the ring (k, m)."""
        most = np.square(self.largest_deviation)
        return FixedPoint.of(np.maximum(self.counts, 1) * most)

    @cached_property
    def spreads(self) -> FloatArray:
        """Return the standard deviation of each line and number (k, m)."""
        total = self._decode_sums(SQUARES, self.square_units)
        spread = varies(total, self.counts, self.means, self.value_units.unit)
        there = self.has_enough_values & spread
        return np.sqrt(np.where(there, total, 0.0) / np.maximum(self.counts, 1))

    def _decode_sums(self, which: int, units: FixedPoint) -> FloatArray:
        words = self.sums[which - 1].view(np.uint64)
        return units.decode(words.reshape(self.n_clusters, -1))

    @cached_property
    def grid(self) -> Grid:
        """Return the grid of the numbers."""
        if self.describes:
            return Grid.of_ranges(self.fields.bounds, self.fields.whole)
        weight = np.where(self.has_enough_values, self.counts, 0)
        n = np.maximum(weight.sum(axis=0), 1)
        mean = (weight * self.means).sum(axis=0) / n
        around = np.square(self.spreads) + np.square(self.means - mean)
        spread = np.sqrt((weight * around).sum(axis=0) / n)
        return Grid.of(mean, spread, self.fields.bounds, self.fields.whole)

    @cached_property
    def histograms(self) -> IntArray | None:
        """Return how many values each part has (k, m, SIZE); None if nobody asked."""
        if not has_histograms(self.fields, self.n_clusters):
            return None
        cells = self.n_clusters * len(self.fields.numbers)
        return self.sums[HISTOGRAMS - 1][: cells * SIZE].reshape(
            self.n_clusters, -1, SIZE
        )

    @cached_property
    def survival(self) -> IntArray:
        """Return events and censorings by time, line and bin (times, k, 2, BINS)."""
        shape = (len(self.fields.times), self.n_clusters, 2, BINS)
        counts = self.sums[HISTOGRAMS - 1]
        return counts[len(counts) - math.prod(shape) :].reshape(shape)

    def fits(self, words: WordArray) -> bool:
        """Return whether these words can be the next sum of such members."""
        total = words.view(np.int64)
        known, which = self.with_sum(total), len(self.sums) + 1
        if which == SIZES:
            return _are_counts(total, np.array(self.n_rows))
        if which == COUNTS:
            rows, counts, levels = known.line_rows, known.counts, known.levels
            return (
                bool(((counts >= 0) & (counts <= rows[:, None])).all())
                and all(
                    _are_counts(levels[:, begin:end], rows)
                    for begin, end in pairwise(known.fields.ends.tolist())
                )
                and POWERS.fits(known.powers, known.n_members)
            )
        if which == DEVIATIONS:
            return POWERS.fits(total, self.n_members)
        if which == HISTOGRAMS:
            cells = known.survival.reshape(-1, self.n_clusters, 2 * BINS)
            if not all(_are_counts(each, self.line_rows) for each in cells):
                return False
            found = known.histograms
            if found is None:
                return True
            expected = np.where(self.has_enough_values, self.counts, 0)
            return (
                _are_counts(found, expected)
                and (found.sum(axis=2) == expected).all().item()
            )
        units = self.value_units if which == VALUES else self.square_units
        return units.fits(words.reshape(self.n_clusters, -1)) and (
            which == VALUES or bool((total >= 0).all())
        )


def _are_counts(numbers: IntArray, most: IntArray) -> bool:
    """Return whether these are counts of which at most so many are in each last axis."""
    small = bool(((numbers >= 0) & (numbers <= most[..., None])).all())
    return small and bool((numbers.sum(axis=-1) <= most).all())


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
    if which == SIZES:
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
    """Return how many values lie in each part of the grid, and of times in each bin."""
    survival = _survival(known, data, labels).ravel()
    if not has_histograms(known.fields, known.n_clusters):
        return survival
    m = len(known.fields.numbers)
    found = np.zeros((known.n_clusters, m, SIZE), dtype=np.int64)
    for line, values, counted in _numbers(known, data, labels):
        cell = (line[:, None] * m + np.arange(m)) * SIZE + known.grid.part(values)
        found += np.bincount(cell[counted], minlength=found.size).reshape(found.shape)
    return np.concatenate([found.ravel(), survival])


def _survival(known: ProfileTotals, data: DataSource, labels: IntArray) -> IntArray:
    times, k = known.fields.times, known.n_clusters
    found = np.zeros((len(times), k, 2, BINS), dtype=np.int64)
    if times:
        for line, rows in _lines(known, data, labels):
            for number, (place, event) in enumerate(times):
                most = known.fields.schema.fields[place].bounds[1]
                found[number] += count_rows(
                    rows[:, place], rows[:, event], line, most, k
                )
    return found


_PASSES: Final[
    Mapping[int, Callable[[ProfileTotals, DataSource, IntArray], IntArray]]
] = {
    COUNTS: _counts,
    VALUES: _values,
    DEVIATIONS: _deviations,
    SQUARES: _squares,
    HISTOGRAMS: _histograms,
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
