"""Passes over rows: squared distances, the nearest centroid, sums of whole numbers.

Rows are handled in blocks that stay in the cache, features first, so that the inner
loops run over rows and become vector instructions whatever k and F are. There is no
matrix product, whose bits depend on how many rows it is given: a row's distances are
added up in one order, by IEEE's arithmetic, and are the same bits in every block.

Sums are of terms that were rounded to whole units before: whole numbers add up exactly
in any order, so that sums depend neither on blocks nor on threads.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clustering_protocols.numerics.compilation import compile_kernel, compile_once
from clustering_protocols.records.arrays import FloatArray, IntArray

BLOCK: Final = 256
_AT_ONCE: Final = 8


@compile_kernel
def scaled_block(
    X: FloatArray,
    begin: int,
    size: int,
    offset: FloatArray,
    inverse: FloatArray,
    block: FloatArray,
) -> None:
    """Write (x - offset) · inverse of a block of rows, features first.

    Eight rows a turn: they are what is written at once, and stay in the cache until the
    last of their features was read.
    """
    whole = size - size % _AT_ONCE
    for first in range(0, whole, _AT_ONCE):
        for f in range(X.shape[1]):
            for i in range(first, first + _AT_ONCE):
                block[f, i] = (X[begin + i, f] - offset[f]) * inverse[f]
    for i in range(whole, size):
        for f in range(X.shape[1]):
            block[f, i] = (X[begin + i, f] - offset[f]) * inverse[f]


@compile_kernel
def distances(block: FloatArray, size: int, V: FloatArray, D: FloatArray) -> None:
    """Write squared distances (k, size) of a block to all centroids (k, F).

    Four features a turn: a quarter of the loads and stores of D.
    """
    n_features = V.shape[1]
    whole = n_features - n_features % 4
    for c in range(V.shape[0]):
        for i in range(size):
            D[c, i] = 0.0
        for f in range(0, whole, 4):
            v0, v1, v2, v3 = V[c, f], V[c, f + 1], V[c, f + 2], V[c, f + 3]
            for i in range(size):
                a = block[f, i] - v0
                b = block[f + 1, i] - v1
                e = block[f + 2, i] - v2
                g = block[f + 3, i] - v3
                D[c, i] += (a * a + b * b) + (e * e + g * g)
        for f in range(whole, n_features):
            v0 = V[c, f]
            for i in range(size):
                a = block[f, i] - v0
                D[c, i] += a * a


def squared_distances(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return squared distances (n, k) between rows (n, F) and (k, F).

    The same bits as SciPy's ``cdist(A, B, "sqeuclidean")``, which takes each process half
    a second to import.
    """
    D = np.empty((len(A), len(B)))
    _fill_squared_distances(A, B, D)
    return D


@compile_once(2)
def _fill_squared_distances(A: FloatArray, B: FloatArray, D: FloatArray) -> None:
    for i in range(A.shape[0]):
        for c in range(B.shape[0]):
            total = 0.0
            for f in range(A.shape[1]):
                apart = A[i, f] - B[c, f]
                total += apart * apart
            D[i, c] = total


@compile_kernel
def nearest_of_block(
    D: FloatArray, size: int, tie: float, labels: IntArray, smallest: FloatArray
) -> None:
    """Write the nearest centroid and its squared distance; ties go to the lowest.

    Squared distances that differ by no more than ``tie`` are equal.
    """
    for i in range(size):
        smallest[i] = D[0, i]
        labels[i] = 0
    for c in range(1, D.shape[0]):
        for i in range(size):
            if D[c, i] < smallest[i] - tie:
                smallest[i] = D[c, i]
                labels[i] = c


@compile_once(5)
def nearest_sums(
    X: FloatArray,
    offset: FloatArray,
    inverse: FloatArray,
    V: FloatArray,
    units: FloatArray,
    sums: IntArray,
    counts: IntArray,
    within_units: FloatArray,
    within: IntArray,
    tie: float,
) -> None:
    """Add the sums and counts of the rows nearest to each centroid, in whole units.

    X: float64 (n, F), C-contiguous.
    offset, inverse: float64 (F,); a row counts as (x - offset) · inverse.
    V: float64 (k, F).
    units: float64 (F,).
    sums: int64 (k, F), added to.
    counts: int64 (k,), added to.
    within_units: float64 (2,); of squared distances to the nearest centroid: whole
        units, and units of what is left of one. Zeros where nobody asks.
    within: int64 (2,), added to.
    tie: see :func:`nearest_of_block`.
    """
    n, n_features = X.shape
    block = np.empty((n_features, BLOCK))
    D = np.empty((V.shape[0], BLOCK))
    smallest = np.empty(BLOCK)
    labels = np.empty(BLOCK, np.int64)
    for begin in range(0, n, BLOCK):
        size = min(BLOCK, n - begin)
        scaled_block(X, begin, size, offset, inverse, block)
        distances(block, size, V, D)
        nearest_of_block(D, size, tie, labels, smallest)
        add_rows(X, begin, labels[:size], offset, inverse, units, sums, counts)
        for i in range(size):
            away = smallest[i] * within_units[0]
            whole = np.floor(away)
            within[0] += np.int64(whole)
            within[1] += np.int64((away - whole) * within_units[1])


@compile_kernel
def add_rows(
    X: FloatArray,
    begin: int,
    labels: IntArray,
    offset: FloatArray,
    inverse: FloatArray,
    units: FloatArray,
    sums: IntArray,
    counts: IntArray,
) -> None:
    """Add rows from begin on to the sums and counts of their labels, in whole units.

    labels: int64 (size,); of as many rows as are added.
    X, offset, inverse, units, sums, counts: as in :func:`nearest_sums`.
    """
    for i in range(len(labels)):
        c = labels[i]
        counts[c] += 1
        for f in range(X.shape[1]):
            x = (X[begin + i, f] - offset[f]) * inverse[f]
            sums[c, f] += np.int64(np.rint(x * units[f]))


@compile_once(4)
def bring_nearer(
    X: FloatArray,
    offset: FloatArray,
    inverse: FloatArray,
    V: FloatArray,
    first: int,
    labels: IntArray,
    smallest: FloatArray,
    tie: float,
) -> None:
    """Write number and squared distance of what is nearer than what was found before.

    X, offset, inverse, V: as in :func:`nearest_sums`.
    first: number of the first centroid; ties go to what was found before.
    labels: int64 (n,), written.
    smallest: float64 (n,), written; infinite where nothing was found before.
    tie: see :func:`nearest_of_block`.
    """
    n, n_features = X.shape
    block = np.empty((n_features, BLOCK))
    D = np.empty((V.shape[0], BLOCK))
    nearest = np.empty(BLOCK, np.int64)
    away = np.empty(BLOCK)
    for begin in range(0, n, BLOCK):
        size = min(BLOCK, n - begin)
        scaled_block(X, begin, size, offset, inverse, block)
        distances(block, size, V, D)
        nearest_of_block(D, size, tie, nearest, away)
        for i in range(size):
            if away[i] < smallest[begin + i] - tie:
                smallest[begin + i] = away[i]
                labels[begin + i] = first + nearest[i]


@compile_once(3)
def absolute_sums(
    X: FloatArray, offset: FloatArray, units: FloatArray, sums: IntArray
) -> None:
    """Add Σ |x - offset| of each column, in whole units.

    X: float64 (n, F), C-contiguous.
    offset, units: float64 (F,).
    sums: int64 (F,), added to.
    """
    for i in range(X.shape[0]):
        for f in range(X.shape[1]):
            sums[f] += np.int64(np.rint(abs(X[i, f] - offset[f]) * units[f]))


@compile_once(2)
def reach(X: FloatArray, offset: FloatArray, largest: FloatArray) -> None:
    """Write max |x - offset| of each column where it is larger than what is there.

    What is not a number stays: it is larger than all.

    X: float64 (n, F), C-contiguous.
    offset: float64 (F,).
    largest: float64 (F,), written.
    """
    for i in range(X.shape[0]):
        for f in range(X.shape[1]):
            away = abs(X[i, f] - offset[f])
            largest[f] = np.maximum(largest[f], away)
