"""Lloyd's iteration in whole numbers: the same bits on any number of threads.

Rows are cut into blocks, and what blocks give is added up. Terms are whole multiples of
a unit, so that sums are exact and neither blocks nor threads change a bit of labels,
centroids or inertia. Units are powers of two, a column's own, so that the sum of all
absolute values stays below 2^62: what is rounded off a mean is no more than 2^-63 of
n² times the mean absolute value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np

from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.blocks import ONE_THREAD, Engine

from .row_kernels import absolute_sums, bring_nearer, nearest_sums, reach

WORTH_A_THREAD: Final = 10**7
"""From how many rows × features × clusters on an engine's threads share an iteration.

It takes one thread some milliseconds. Threads wait for each other at the end of each
iteration: with less to do, and where processors are busy, they wait more than they work.
"""
_BITS: Final = 62
_BLOCK_ITEMS: Final = 1 << 20
_SAMPLED: Final = 256  # rows that say where the middle is


class Nearest(NamedTuple):
    """The number of what is nearest to each row (n,), and its squared distance (n,)."""

    labels: IntArray
    away: FloatArray

    @classmethod
    def of_nothing(cls, rows: slice) -> Nearest:
        """Return that nothing was found yet."""
        n = rows.stop - rows.start
        return cls(np.zeros(n, np.int64), np.full(n, np.inf))

    def copy(self, rows: slice) -> Nearest:
        """Return that of some rows."""
        return Nearest(self.labels[rows].copy(), self.away[rows].copy())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """How a run ended.

    Attributes
    ----------
    V : float64 array of shape (k, F)
        Centroids less the offset.
    inertia : Fraction
    n_iter : int
    converged : bool
    """

    V: FloatArray = field(repr=False)
    inertia: Fraction
    n_iter: int
    converged: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Rows, and the units in which they are added up.

    Attributes
    ----------
    X : float64 array of shape (n, F), C-contiguous
        Not changed.
    offset : float64 array of shape (F,)
        About the middle of each column; what is added up is x - offset.
    units : float64 array of shape (F,)
    within_units : float64 array of shape (2,)
        See :func:`~clustering_protocols.algorithms.row_kernels.nearest_sums`.
    engine : Engine
    """

    X: FloatArray = field(repr=False)
    offset: FloatArray = field(repr=False)
    units: FloatArray = field(repr=False)
    within_units: FloatArray = field(repr=False)
    engine: Engine = field(repr=False)

    @classmethod
    def of(cls, X: FloatArray, engine: Engine, n_clusters: int) -> Rows:
        """Return rows with units that no sum of them outgrows.

        The offset is a median of some rows, and the bound the sum of absolute values:
        a value far out takes digits from the others only as far as it takes part in
        their sum. Raises ValueError of what is no finite number.
        """
        X = np.ascontiguousarray(X, dtype=np.float64)
        engine = engine if X.size * n_clusters >= WORTH_A_THREAD else ONE_THREAD
        n, n_features = X.shape
        sampled = np.ascontiguousarray(X[:: max(n // _SAMPLED, 1)].T)
        offset = np.median(sampled, axis=1)
        farthest = _farthest(X, offset, engine)
        if not np.isfinite(farthest).all():
            raise ValueError("rows to cluster hold what is no finite number")
        coarse = units_below(n * farthest)

        def added(rows: slice) -> IntArray:
            sums = np.zeros(n_features, np.int64)
            absolute_sums(X[rows], offset, coarse, sums)
            return sums

        total = sum(engine.map(added, _blocks(X)), np.zeros(n_features, np.int64))
        diameter = np.square(2 * farthest).sum()
        return cls(
            X=X,
            offset=offset,
            units=units_below((total + n) / coarse),
            within_units=units_below(np.array([n * diameter, n])),
            engine=engine,
        )

    def blocks(self) -> Iterator[slice]:
        """Yield which rows are worked on at once."""
        return _blocks(self.X)

    def at(self, rows: IntArray) -> FloatArray:
        """Return some rows less the offset."""
        return np.ascontiguousarray(self.X[rows] - self.offset)

    def sums(self, V: FloatArray) -> tuple[IntArray, IntArray, Fraction]:
        """Return sums (k, F) and counts (k,) of the rows nearest to V, and Σ d²."""
        ones = np.ones(len(self.offset))

        def added(rows: slice) -> tuple[IntArray, IntArray, IntArray]:
            sums, counts = np.zeros(V.shape, np.int64), np.zeros(len(V), np.int64)
            within = np.zeros(2, np.int64)
            nearest_sums(
                *(self.X[rows], self.offset, ones, V, self.units),
                *(sums, counts, self.within_units, within),
            )
            return sums, counts, within

        total, sizes = np.zeros(V.shape, np.int64), np.zeros(len(V), np.int64)
        words = np.zeros(2, np.int64)
        for sums, counts, within in self.engine.map(added, self.blocks()):
            total += sums
            sizes += counts
            words += within
        return total, sizes, self._together(words)

    def nearest(
        self, V: FloatArray, known: Nearest | None = None, first: int = 0
    ) -> Iterator[tuple[slice, Nearest]]:
        """Yield which of V, numbered from first, are nearest to a block's rows.

        ``known`` is what was found before; it counts where nothing nearer is found.
        """
        ones = np.ones(len(self.offset))

        def compared(rows: slice) -> tuple[slice, Nearest]:
            found = Nearest.of_nothing(rows) if known is None else known.copy(rows)
            bring_nearer(self.X[rows], self.offset, ones, V, first, *found)
            return rows, found

        return self.engine.map(compared, self.blocks())

    def _together(self, words: IntArray) -> Fraction:
        whole, left = (Fraction(float(unit)) for unit in self.within_units)
        return (int(words[0]) + int(words[1]) / left) / whole


def units_below(bounds: FloatArray) -> FloatArray:
    """Return powers of two that take numbers up to these bounds to at most 2^62."""
    _, exponents = np.frexp(bounds)
    units = np.ldexp(1.0, np.clip(_BITS - exponents, -1000, 1000))
    return np.where(bounds > 0, units, 1.0)


def _farthest(X: FloatArray, offset: FloatArray, engine: Engine) -> FloatArray:
    """Return max |x - offset| (F,) of each column."""

    def found(rows: slice) -> FloatArray:
        largest = np.zeros(len(offset))
        reach(X[rows], offset, largest)
        return largest

    farthest: FloatArray = np.max(list(engine.map(found, _blocks(X))), axis=0)
    return farthest


def _blocks(X: FloatArray) -> Iterator[slice]:
    size = max(_BLOCK_ITEMS // X.shape[1], 1)
    for begin in range(0, len(X), size):
        yield slice(begin, min(begin + size, len(X)))


def lloyd(rows: Rows, V: FloatArray, max_iter: int) -> Run:
    """Move centroids V (k, F) to the means of their rows until they rest.

    They rest where no row changes its centroid: sums and counts are whole numbers, equal
    then, and only then but for chance.
    """
    before: IntArray | None = None
    for n_iter in range(1, max_iter + 1):
        sums, counts, inertia = rows.sums(V)
        if not counts.all():
            sums, counts = _relocated(rows, V, sums, counts)
        now = np.column_stack([counts, sums])
        if before is not None and np.array_equal(now, before):
            return Run(V=V, inertia=inertia, n_iter=n_iter, converged=True)
        there = counts > 0  # what no row is left for stays
        V = V.copy()
        V[there] = sums[there] / counts[there, np.newaxis] / rows.units
        before = now
    return Run(V=V, inertia=rows.sums(V)[2], n_iter=max_iter, converged=False)


def _relocated(
    rows: Rows, V: FloatArray, sums: IntArray, counts: IntArray
) -> tuple[IntArray, IntArray]:
    """Give each empty cluster the row farthest from its centroid, as scikit-learn does."""
    empty = np.flatnonzero(counts == 0)
    far = np.empty((0, 3))  # row, label, squared distance
    for block, found in rows.nearest(V):
        numbers = np.arange(block.start, block.stop)
        far = np.vstack([far, np.column_stack([numbers, *found])])
        far = far[np.argsort(-far[:, 2], kind="stable")[: len(empty)]]
    far = far[far[:, 2] > 0]
    sums, counts = sums.copy(), counts.copy()
    for new, (row, old, _) in zip(empty, far.astype(np.int64), strict=False):
        whole = np.rint(rows.at(row) * rows.units).astype(np.int64)
        sums[old] -= whole
        counts[old] -= 1
        sums[new], counts[new] = whole, 1
    return sums, counts
