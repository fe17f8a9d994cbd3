"""Lloyd's iteration in integer arithmetic, with the same bits on any number of threads.

Rows are added up block by block. Each term is first rounded to a multiple of a unit, so
that sums are exact, and neither blocks nor threads change any bit of the labels,
centroids or inertia. The unit of a column is a power of two, chosen so that the sum of
all absolute values stays below 2^62. Rounding changes a mean by at most 2^-63 n² times
the mean absolute value.

Distances that are equal in exact arithmetic, for example between rows of zeros and
ones, must count as equal, although rounding errors separate them differently in a
session and on the pooled rows. So differences of squared distances below a small
fraction of the rows' spread are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from clustering_protocols.numerics import row_blocks
from clustering_protocols.numerics.blocks import ONE_THREAD, Engine
from clustering_protocols.numerics.row_blocks import ArrayRows, RowBlock, RowBlocks
from clustering_protocols.records.arrays import FloatArray, IntArray

from .row_kernels import absolute_sums, nearest_sums, reach, update_nearest

WORTH_A_THREAD: Final = 10**7
"""The smallest rows × features × clusters at which threads share an iteration.

A single thread does this much work in a few milliseconds. Threads wait for each other
after each iteration, and with less work, or on a busy machine, they mostly wait.
"""
TIE: Final = 1e-10
"""Squared distances that differ by less count as equal.

The unit is the rows' squared mean deviation, added up over the columns.
"""
_BITS: Final = 62
_SAMPLE_ROWS: Final = 256  # the offset is the median of this many rows
_CENTROIDS_AT_ONCE: Final = 1 << 9  # distances from 256 rows to these fit in the cache


class Nearest(NamedTuple):
    """The number (n,) of each row's nearest centroid, and the squared distance (n,)."""

    labels: IntArray
    squared: FloatArray


class Units(NamedTuple):
    """The units in which kernels add up a block of rows.

    offset: float64 (F,); roughly the median of each column; kernels add up x - offset.
    of_sums: float64 (F,); factors by which x - offset is multiplied before rounding.
    of_inertia: float64 (2,); see
        :func:`~clustering_protocols.algorithms.row_kernels.nearest_sums`.
    tie: squared distances that differ by at most this much count as equal.
    """

    offset: FloatArray
    of_sums: FloatArray
    of_inertia: FloatArray
    tie: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LloydRun:
    """The result of Lloyd's iteration from one set of initial centroids.

    V: float64 (k, F); the centroids minus the offset of the rows' :class:`Units`.
    """

    V: FloatArray = field(repr=False)
    inertia: Fraction
    n_iter: int
    converged: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScaledRows:
    """Rows to cluster, together with the units in which they are added up."""

    source: RowBlocks = field(repr=False)
    units: Units = field(repr=False)
    engine: Engine = field(repr=False)

    @classmethod
    def scale(cls, rows: RowBlocks, engine: Engine, n_clusters: int) -> ScaledRows:
        """Choose the finest units in which the sums of these rows stay below 2^62.

        The offset is the median of a sample of rows, and the units follow from the
        columns' sums of absolute values. An outlier therefore costs the other rows
        precision only in proportion to its share of such a sum. Raises ValueError if a
        value is not finite.
        """
        n, n_features = rows.shape
        if n * n_features * n_clusters < WORTH_A_THREAD:
            engine = ONE_THREAD
        if n <= row_blocks.rows_per_block(n_features):  # load the only block once
            rows, engine = ArrayRows(rows.load()), ONE_THREAD
        sampled = rows.take(np.arange(0, n, max(n // _SAMPLE_ROWS, 1)))
        offset = np.median(sampled, axis=0, overwrite_input=True)
        block_maxima = engine.map(partial(_max_deviations, offset), rows.blocks())
        farthest: FloatArray = np.max(list(block_maxima), axis=0)
        if not np.isfinite(farthest).all():
            raise ValueError("rows to cluster hold NaN or an infinite number")
        coarse = power_of_two_units(n * farthest)
        block_sums = engine.map(partial(_absolute_sums, offset, coarse), rows.blocks())
        total = sum(block_sums, np.zeros(n_features, np.int64))
        diameter = np.square(2 * farthest).sum()
        units = Units(
            offset=offset,
            of_sums=power_of_two_units((total + n) / coarse),
            of_inertia=power_of_two_units(np.array([n * diameter, n])),
            tie=TIE * float(np.square(total / coarse / n).sum()),
        )
        return cls(source=rows, units=units, engine=engine)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.source.shape[0]

    def take(self, numbers: IntArray) -> FloatArray:
        """Return the rows (s, F) with these indices (s,), minus the offset."""
        return self.source.take(numbers) - self.units.offset

    def sum_by_nearest(self, V: FloatArray) -> tuple[IntArray, IntArray, Fraction]:
        """Return sums (k, F), counts (k,) and the inertia of rows by nearest centroid."""
        total, sizes = np.zeros(V.shape, np.int64), np.zeros(len(V), np.int64)
        words = np.zeros(2, np.int64)
        kernel = partial(_sum_by_nearest, self.units, V)
        for sums, counts, inertia in self.engine.map(kernel, self.source.blocks()):
            total += sums
            sizes += counts
            words += inertia
        whole, fraction = (Fraction(float(unit)) for unit in self.units.of_inertia)
        return total, sizes, (int(words[0]) + int(words[1]) / fraction) / whole

    def iter_nearest(self, V: FloatArray) -> Iterator[tuple[slice, Nearest]]:
        """Yield for each block of rows its slice, and the nearest of the centroids V."""
        kernel = partial(_nearest_in_block, self.units, V)
        return self.engine.map(kernel, self.source.blocks())

    def find_farthest(self, V: FloatArray, limit: int) -> FloatArray:
        """Return the rows that are farthest from their nearest centroids, farthest first.

        The result (r, 3) lists at most ``limit`` rows: the index of the row, its label,
        and its squared distance to the centroid. Rows on a centroid are excluded.
        """
        far = np.empty((0, 3))
        kernel = partial(_farthest_in_block, self.units, V, limit)
        for candidates in self.engine.map(kernel, self.source.blocks()):
            far = _select_farthest(np.vstack([far, candidates]), limit, self.units.tie)
        return far[far[:, 2] > self.units.tie]


def power_of_two_units(bounds: FloatArray) -> FloatArray:
    """Return the largest powers of two that scale numbers within bounds to below 2^62."""
    _, exponents = np.frexp(bounds)
    units = np.ldexp(1.0, np.clip(_BITS - exponents, -1000, 1000))
    return np.where(bounds > 0, units, 1.0)


# Kernels may run in other processes, so the arguments bound to them must be small


def _max_deviations(offset: FloatArray, block: RowBlock) -> FloatArray:
    largest = np.zeros(len(offset))
    reach(block.load(), offset, largest)
    return largest


def _absolute_sums(offset: FloatArray, units: FloatArray, block: RowBlock) -> IntArray:
    sums = np.zeros(len(offset), np.int64)
    absolute_sums(block.load(), offset, units, sums)
    return sums


def _sum_by_nearest(
    units: Units, V: FloatArray, block: RowBlock
) -> tuple[IntArray, IntArray, IntArray]:
    sums, counts = np.zeros(V.shape, np.int64), np.zeros(len(V), np.int64)
    inertia = np.zeros(2, np.int64)
    nearest_sums(
        *(block.load(), units.offset, np.ones(V.shape[1]), V, units.of_sums),
        *(sums, counts, units.of_inertia, inertia, units.tie),
    )
    return sums, counts, inertia


def nearest_centroids(units: Units, V: FloatArray, X: FloatArray) -> Nearest:
    """Find the centroid of V (k, F) that is nearest to each row of X (n, F).

    The offset has already been subtracted from V, but not from X.
    """
    n, ones = len(X), np.ones(V.shape[1])
    nearest = Nearest(np.zeros(n, np.int64), np.full(n, np.inf))
    for first in range(0, len(V), _CENTROIDS_AT_ONCE):
        centroids = V[first : first + _CENTROIDS_AT_ONCE]
        update_nearest(X, units.offset, ones, centroids, first, *nearest, units.tie)
    return nearest


def _nearest_in_block(
    units: Units, V: FloatArray, block: RowBlock
) -> tuple[slice, Nearest]:
    return block.span, nearest_centroids(units, V, block.load())


def _farthest_in_block(
    units: Units, V: FloatArray, limit: int, block: RowBlock
) -> FloatArray:
    span, nearest = _nearest_in_block(units, V, block)
    rows = np.arange(span.start, span.stop)
    return _select_farthest(np.column_stack([rows, *nearest]), limit, units.tie)


def _select_farthest(far: FloatArray, limit: int, tie: float) -> FloatArray:
    squared = np.rint(far[:, 2] / tie) if tie > 0 else far[:, 2]
    return far[np.argsort(-squared, kind="stable")[:limit]]


def lloyd(rows: ScaledRows, V: FloatArray, max_iter: int) -> LloydRun:
    """Move centroids V (k, F) to the means of their rows until no label changes.

    Labels are not stored: if the integer sums and counts of two iterations are equal,
    it is practically certain that no label has changed.
    """
    previous: IntArray | None = None
    for n_iter in range(1, max_iter + 1):
        sums, counts, inertia = rows.sum_by_nearest(V)
        if not counts.all():
            sums, counts = _relocate_empty_clusters(rows, V, sums, counts)
        totals = np.column_stack([counts, sums])
        if previous is not None and np.array_equal(totals, previous):
            return LloydRun(V=V, inertia=inertia, n_iter=n_iter, converged=True)
        nonempty = counts > 0  # a centroid without rows does not move
        V = V.copy()
        V[nonempty] = sums[nonempty] / counts[nonempty, np.newaxis] / rows.units.of_sums
        previous = totals
    return LloydRun(
        V=V, inertia=rows.sum_by_nearest(V)[2], n_iter=max_iter, converged=False
    )


def _relocate_empty_clusters(
    rows: ScaledRows, V: FloatArray, sums: IntArray, counts: IntArray
) -> tuple[IntArray, IntArray]:
    """Move rows far from their centroids to empty clusters, as scikit-learn does."""
    empty = np.flatnonzero(counts == 0)
    far = rows.find_farthest(V, len(empty))
    numbers, old_labels = far[:, :2].astype(np.int64).T
    sums, counts = sums.copy(), counts.copy()
    moved = zip(empty, rows.take(numbers), old_labels, strict=False)
    for new, row, old in moved:
        whole = np.rint(row * rows.units.of_sums).astype(np.int64)
        sums[old] -= whole
        counts[old] -= 1
        sums[new], counts[new] = whole, 1
    return sums, counts
