"""Sums of labelled rows, compiled: each reads the rows once, O(block × k) of memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from clustering_protocols.algorithms.row_kernels import BLOCK, distances, scaled_block
from clustering_protocols.numerics.compilation import compile_kernel, compile_once
from clustering_protocols.records.arrays import FloatArray, IntArray


@compile_kernel
def _check(labels: IntArray, k: int) -> None:
    """Refuse labels of no cluster: compiled code would read and write beside arrays."""
    for c in labels:
        if not 0 <= c < k:
            raise IndexError("a label is of no cluster")


@compile_once(4)
def add_by_label(
    X: FloatArray,
    offset: FloatArray,
    inverse: FloatArray,
    labels: IntArray,
    sums: FloatArray,
) -> None:
    """Add rows to the sums of their labels, row after row.

    X: float64 (n, F).
    offset, inverse: float64 (F,); a row counts as (x - offset) · inverse.
    labels: int64 (n,); in [0, k).
    sums: float64 (k, F), added to.

    Raises IndexError if a label is of no cluster.
    """
    _check(labels, len(sums))
    for i in range(X.shape[0]):
        c = labels[i]
        for f in range(X.shape[1]):
            sums[c, f] += (X[i, f] - offset[f]) * inverse[f]


@compile_once(6)
def add_around(
    X: FloatArray,
    offset: FloatArray,
    inverse: FloatArray,
    means: FloatArray,
    labels: IntArray,
    counts: IntArray,
    squares: FloatArray,
    lengths: FloatArray,
) -> float:
    """Add distances of rows to the means of their clusters; return their silhouettes' sum.

    The simplified silhouette of a row is (b - a) / max(a, b), with its distances a to the
    mean of its own cluster and b to the nearest other that has rows; 0 in a cluster of
    one row, where both are 0, or there is no other.

    X, offset, inverse, labels: as in :func:`add_by_label`.
    means: float64 (k, F); what stands for empty clusters is not looked at.
    counts: int64 (k,); n_c over all rows, these among them.
    squares, lengths: float64 (k,), added to; Σ ‖x - m_c‖² and Σ ‖x - m_c‖.

    Raises IndexError if a label is of no cluster.
    """
    _check(labels, len(means))
    block = np.empty((X.shape[1], BLOCK))
    D = np.empty((means.shape[0], BLOCK))
    others = np.empty(BLOCK)
    silhouettes = 0.0
    for begin in range(0, X.shape[0], BLOCK):
        size = min(BLOCK, X.shape[0] - begin)
        scaled_block(X, begin, size, offset, inverse, block)
        distances(block, size, means, D)
        own = labels[begin : begin + size]
        _nearest_other(D, size, own, counts, others)
        for i in range(size):
            within = D[own[i], i]
            a, b = np.sqrt(within), np.sqrt(others[i])
            squares[own[i]] += within
            lengths[own[i]] += a
            larger = max(a, b)
            if counts[own[i]] > 1 and larger > 0.0 and np.isfinite(b):
                silhouettes += (b - a) / larger
    return silhouettes


@compile_kernel
def _nearest_other(
    D: FloatArray, size: int, own: IntArray, counts: IntArray, others: FloatArray
) -> None:
    """Write the least entry of each row's distances, over other clusters with rows."""
    for i in range(size):
        others[i] = np.inf
    for c in range(D.shape[0]):
        if counts[c] == 0:
            continue
        for i in range(size):
            if own[i] != c and D[c, i] < others[i]:
                others[i] = D[c, i]


class BlockSums(NamedTuple):
    """What rows add to :class:`~.sums.ClusterSums`; fields as there."""

    squares: FloatArray
    distances: FloatArray
    silhouettes: float


def of_block(
    X: FloatArray,
    affine: tuple[FloatArray, FloatArray],
    means: FloatArray,
    labels: IntArray,
    counts: IntArray,
) -> BlockSums:
    """Return the sums of a block of rows around means; see :func:`add_around`.

    affine: pair of float64 (F,); offset and inverse.
    """
    squares, distances = np.zeros(len(means)), np.zeros(len(means))
    fixed = (*affine, means, labels, counts)
    silhouettes = add_around(X, *fixed, squares, distances)
    return BlockSums(squares, distances, silhouettes)
