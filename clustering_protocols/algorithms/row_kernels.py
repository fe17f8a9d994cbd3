"""Kernels that pass over rows: squared distances, nearest centroids, sums of integers.

Rows are processed in blocks that fit in the cache. The first axis of a block is that of
features, so that the inner loops run over rows and compile to vector instructions for
any k and F. The bits of a matrix product depend on the number of rows, so distances are
instead added up in a fixed order of IEEE operations, and a row's distances have the
same bits in any block.

Terms are rounded to whole units before they are added. Integers add up exactly in any
order, so the sums depend neither on blocks nor on threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from clustering_protocols.numerics.kernels import in_c
from clustering_protocols.records.arrays import FloatArray, IntArray

_BLOCK: Final = 4096  # rows


def iter_blocks(
    X: FloatArray, offset: FloatArray, inverse: FloatArray, V: FloatArray
) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Yield each block's slice of X, its scaled rows, and their distances to V.

    The scaled rows are (F, size): a row x becomes (x - offset) · inverse. The squared
    distances (k, size) are to the centroids V. Features are added four at a time, as
    the compiled kernels do, because the order determines the last bits.
    """
    whole = V.shape[1] - V.shape[1] % 4
    for begin in range(0, len(X), _BLOCK):
        rows = slice(begin, min(begin + _BLOCK, len(X)))
        block = ((X[rows] - offset) * inverse).T
        D = np.zeros((len(V), block.shape[1]))
        for f in range(0, whole, 4):
            a, b, e, g = (block[j] - V[:, j, None] for j in range(f, f + 4))
            D += (a * a + b * b) + (e * e + g * g)
        for f in range(whole, V.shape[1]):
            a = block[f] - V[:, f, None]
            D += a * a
        yield rows, block, D


def squared_distances(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return the squared distances (n, k) between rows A (n, F) and rows B (k, F).

    The result has the same bits as SciPy's ``cdist(A, B, "sqeuclidean")``, which is not
    used because importing it takes half a second in every process.
    """
    D = np.empty((len(A), len(B)))
    _squared_distances(A, B, D)
    return D


@in_c("D")
def _squared_distances(A: FloatArray, B: FloatArray, D: FloatArray) -> None:
    D[:] = 0.0
    for a, b in zip(A.T, B.T, strict=True):
        apart = a[:, None] - b
        D += apart * apart


def nearest_in_block(D: FloatArray, tie: float) -> tuple[IntArray, FloatArray]:
    """Return the nearest centroid of each row and the squared distance to it.

    If several centroids are equally near, the lowest-numbered one is returned.

    D: float64 (k, size); squared distances of the rows to the centroids.
    tie: squared distances that differ by at most this much count as equal.
    """
    labels: IntArray = np.zeros(D.shape[1], np.int64)
    smallest = D[0].copy()
    for c in range(1, len(D)):
        nearer = D[c] < smallest - tie
        labels[nearer], smallest[nearer] = c, D[c, nearer]
    return labels, smallest


@in_c("sums", "counts", "inertia")
def nearest_sums(
    X: FloatArray,
    offset: FloatArray,
    inverse: FloatArray,
    V: FloatArray,
    units: FloatArray,
    sums: IntArray,
    counts: IntArray,
    inertia_units: FloatArray,
    inertia: IntArray,
    tie: float,
) -> None:
    """Add each row to the sum and the count of its nearest centroid, in whole units.

    X: float64 (n, F), C-contiguous.
    offset, inverse: float64 (F,); a row x is scaled to (x - offset) · inverse.
    V: float64 (k, F); the centroids.
    units: float64 (F,); scaled values are multiplied by these and rounded.
    sums: int64 (k, F); updated in place.
    counts: int64 (k,); updated in place.
    inertia_units: float64 (2,); the unit of the inertia and a finer one for its
        remainder; zeros if the inertia is not needed.
    inertia: int64 (2,); updated in place.
    tie: see :func:`nearest_in_block`.
    """
    for _, block, D in iter_blocks(X, offset, inverse, V):
        labels, smallest = nearest_in_block(D, tie)
        counts += np.bincount(labels, minlength=len(V))
        np.add.at(sums, labels, np.rint(block.T * units).astype(np.int64))
        away = smallest * inertia_units[0]
        whole = np.floor(away)
        inertia[0] += whole.astype(np.int64).sum()
        inertia[1] += ((away - whole) * inertia_units[1]).astype(np.int64).sum()


@in_c("sums", "counts")
def add_rows(
    X: FloatArray,
    labels: IntArray,
    offset: FloatArray,
    inverse: FloatArray,
    units: FloatArray,
    sums: IntArray,
    counts: IntArray,
) -> None:
    """Add each row to the sum and the count of its label, in whole units.

    labels: int64 (n,); in [0, k).
    X, offset, inverse, units, sums, counts: as in :func:`nearest_sums`.
    """
    counts += np.bincount(labels, minlength=len(counts))
    np.add.at(sums, labels, np.rint((X - offset) * inverse * units).astype(np.int64))


@in_c("labels", "smallest")
def update_nearest(
    X: FloatArray,
    offset: FloatArray,
    inverse: FloatArray,
    V: FloatArray,
    first: int,
    labels: IntArray,
    smallest: FloatArray,
    tie: float,
) -> None:
    """Update each row's nearest centroid and its squared distance, given more centroids.

    X, offset, inverse, V: as in :func:`nearest_sums`.
    first: the number of the first centroid in V; earlier centroids win ties.
    labels: int64 (n,); updated in place.
    smallest: float64 (n,); updated in place; infinite before the first call.
    tie: see :func:`nearest_in_block`.
    """
    for rows, _, D in iter_blocks(X, offset, inverse, V):
        nearest, away = nearest_in_block(D, tie)
        nearer = away < smallest[rows] - tie
        smallest[rows][nearer] = away[nearer]
        labels[rows][nearer] = first + nearest[nearer]


@in_c("sums")
def absolute_sums(
    X: FloatArray, offset: FloatArray, units: FloatArray, sums: IntArray
) -> None:
    """Add Σ |x - offset| of each column to ``sums``, in whole units.

    X: float64 (n, F), C-contiguous.
    offset, units: float64 (F,); |x - offset| times the unit is rounded.
    sums: int64 (F,); updated in place.
    """
    sums += np.rint(np.abs(X - offset) * units).astype(np.int64).sum(axis=0)


@in_c("largest")
def reach(X: FloatArray, offset: FloatArray, largest: FloatArray) -> None:
    """Update ``largest`` with the maximum of |x - offset| in each column, or NaN if any is.

    X: float64 (n, F), C-contiguous.
    offset: float64 (F,).
    largest: float64 (F,); updated in place.
    """
    np.maximum(largest, np.abs(X - offset).max(axis=0, initial=0.0), out=largest)
