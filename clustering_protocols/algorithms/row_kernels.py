"""Passes over rows: squared distances, the nearest centroid, sums of integers.

Rows are handled in blocks that stay in the cache, features first, so that the inner
loops run over rows and become vector instructions whatever k and F are. Distances are not
computed by a matrix product, whose bits depend on the number of rows: they are added up in
a fixed order of IEEE operations, so that a row's distances have the same bits in any block.

Terms are rounded to whole units before they are added: integers add up exactly in any
order, so that sums depend neither on blocks nor on threads.
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
    """Yield each block's slice, its scaled rows (F, size), and their squared distances.

    A row x is scaled to (x - offset) · inverse. The distances (k, size) are those to V.

    Features are added four at a time, as in C, because the order decides the last bits.
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
    """Return squared distances (n, k) between rows (n, F) and (k, F).

    They have the same bits as SciPy's ``cdist(A, B, "sqeuclidean")``, which takes each
    process half a second to import.
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
    """Return each row's nearest centroid and squared distance; ties go to the lowest.

    Squared distances that differ by no more than ``tie`` are equal.
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
    """Add the sums and counts of the rows nearest to each centroid, in whole units.

    X: float64 (n, F), C-contiguous.
    offset, inverse: float64 (F,); a row counts as (x - offset) · inverse.
    V: float64 (k, F).
    units: float64 (F,).
    sums: int64 (k, F), added to.
    counts: int64 (k,), added to.
    inertia_units: float64 (2,); the unit of the inertia, and a finer unit of its
        remainder. Zeros if the inertia is not needed.
    inertia: int64 (2,), added to.
    tie: see :func:`nearest_of_block`.
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
    """Add rows to the sums and counts of their labels, in whole units.

    labels: int64 (n,).
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
    """Update each row's nearest centroid and squared distance given further centroids.

    X, offset, inverse, V: as in :func:`nearest_sums`.
    first: number of the first centroid; ties go to earlier ones.
    labels: int64 (n,), written.
    smallest: float64 (n,), written; infinite before the first centroid.
    tie: see :func:`nearest_of_block`.
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
    offset, units: float64 (F,).
    sums: int64 (F,), added to.
    """
    sums += np.rint(np.abs(X - offset) * units).astype(np.int64).sum(axis=0)


@in_c("largest")
def reach(X: FloatArray, offset: FloatArray, largest: FloatArray) -> None:
    """Raise ``largest`` to the maximum of |x - offset| in each column; NaN is kept.

    X: float64 (n, F), C-contiguous.
    offset: float64 (F,).
    largest: float64 (F,), written.
    """
    np.maximum(largest, np.abs(X - offset).max(axis=0, initial=0.0), out=largest)
