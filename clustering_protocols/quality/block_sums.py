"""Sums over labelled rows, computed in one pass with O(block × k) memory."""

from __future__ import annotations

import numpy as np

from clustering_protocols.algorithms.row_kernels import iter_blocks
from clustering_protocols.numerics.kernels import add_in_order, in_c
from clustering_protocols.records.arrays import FloatArray, IntArray


def _check_labels(labels: IntArray, k: int) -> None:
    # C code would write outside its arrays
    if len(labels) and not 0 <= labels.min() <= labels.max() < k:
        raise IndexError(f"labels must be from 0 to {k - 1}")


def add_by_label(
    X: FloatArray,
    offset: FloatArray,
    inverse: FloatArray,
    labels: IntArray,
    sums: FloatArray,
) -> None:
    """Add each row, in order, to the sum of its label.

    X: float64 (n, F).
    offset, inverse: float64 (F,); a row x is scaled to (x - offset) · inverse.
    labels: int64 (n,); in [0, k).
    sums: float64 (k, F); updated in place.

    Raises IndexError if a label is not in [0, k).
    """
    _check_labels(labels, len(sums))
    _sum_by_label(X, offset, inverse, labels, sums)


@in_c("sums")
def _sum_by_label(
    X: FloatArray,
    offset: FloatArray,
    inverse: FloatArray,
    labels: IntArray,
    sums: FloatArray,
) -> None:
    np.add.at(sums, labels, (X - offset) * inverse)


def sum_around_means(
    X: FloatArray,
    affine: tuple[FloatArray, FloatArray],
    means: FloatArray,
    labels: IntArray,
    counts: IntArray,
) -> FloatArray:
    """Return sums (2k + 1,) of distances between a block of rows and cluster means.

    These are Σ ‖x - m_c‖² (k,), Σ ‖x - m_c‖ (k,), and the sum of simplified
    silhouettes.

    The simplified silhouette of a row is (b - a) / max(a, b), where a is the distance
    to the mean of the row's own cluster and b the distance to the nearest other mean of
    a cluster that has rows. It is 0 for the only row of a cluster, if a and b are both
    0, and if no other cluster has rows.

    affine: offset and inverse; these, X and labels are as in :func:`add_by_label`.
    means: float64 (k, F); the means of empty clusters are ignored.
    counts: int64 (k,); the cluster sizes over all rows, not only over this block.
    """
    _check_labels(labels, len(means))
    squares, lengths = np.zeros(len(means)), np.zeros(len(means))
    fixed = (*affine, means, labels, counts)
    silhouettes = _sum_around(X, *fixed, squares, lengths)
    return np.concatenate([squares, lengths, [silhouettes]])


@in_c("squares", "lengths")
def _sum_around(
    X: FloatArray,
    offset: FloatArray,
    inverse: FloatArray,
    means: FloatArray,
    labels: IntArray,
    counts: IntArray,
    squares: FloatArray,
    lengths: FloatArray,
) -> float:
    silhouettes = 0.0
    for rows, _, D in iter_blocks(X, offset, inverse, means):
        own, columns = labels[rows], np.arange(D.shape[1])
        squared = D[own, columns]
        a = np.sqrt(squared)
        D[own, columns] = np.inf
        D[counts == 0] = np.inf
        b = np.sqrt(D.min(axis=0))
        np.add.at(squares, own, squared)
        np.add.at(lengths, own, a)
        larger = np.maximum(a, b)
        scored = (counts[own] > 1) & (larger > 0.0) & np.isfinite(b)
        terms = (b[scored] - a[scored]) / larger[scored]
        silhouettes = float(add_in_order(silhouettes, terms))
    return silhouettes
