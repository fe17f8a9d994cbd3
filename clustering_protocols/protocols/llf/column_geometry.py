"""Rows up to a motion, from differences of their distances to means of known groups.

The analyst of split columns knows which rows a group has, and reads by how much each row
is farther from the mean of a group than from that of the first. With B (n, g - 1), whose
columns add up the rows of a group and subtract those of the first, both as means, the
centred differences are -2 G B, where G = X X' holds the scalar products of centred rows.
So F = G B and K = B'F are known, and Y = F K^(-1/2) has Y Y' = F K⁺ F', which is G where
the groups' means span as many dimensions as there are columns (Nyström).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clustering_protocols.algorithms.kmeans import draw_starts, kmeans
from clustering_protocols.records.arrays import FloatArray, IntArray

from .column_sample import least_rows

_RANK: Final = 1e-9
"""Directions of less of the largest variance are rounding."""
_ROUNDINGS: Final = 10.0
_N_INIT: Final = 10
_MAX_ITER: Final = 300


def rows_from_differences(
    differences: FloatArray, groups: IntArray, rounding: float
) -> FloatArray:
    """Return rows (n, r) whose distances are those of the joint rows.

    differences: float64 (n, g); squared distances to the mean of each group less that to
        the mean of the first.
    groups: int64 (n,).
    rounding: by how much a difference may be off.
    """
    F = (differences - differences.mean(axis=0))[:, 1:] / -2.0
    sums = np.zeros((differences.shape[1], F.shape[1]))
    np.add.at(sums, groups, F)
    means = sums / np.bincount(groups)[:, None]
    K = means[1:] - means[0]
    values, axes = np.linalg.eigh((K + K.T) / 2.0)
    kept = values > max(_RANK * values.max(), _ROUNDINGS * rounding)
    if not kept.any():  # all rows coincide
        return np.zeros((len(F), 1))
    found: FloatArray = F @ (axes[:, kept] / np.sqrt(values[kept]))
    return found


def partition(Y: FloatArray, k: int, rng: np.random.Generator) -> IntArray:
    """Return the clusters (n,) of rows by k-means, the best of ten starts by distance.

    A cluster of fewer than :func:`least_rows` rows gets the nearest of others that have
    more.
    """
    found = kmeans(Y, draw_starts(Y, k, _N_INIT, rng), _MAX_ITER)
    labels, least = found.labels.copy(), least_rows(len(Y), k)
    sizes = np.bincount(labels, minlength=k)
    for cluster in np.flatnonzero(sizes < least):
        near = np.argsort(np.square(Y - found.centroids[cluster]).sum(axis=1))
        for row in near:
            if sizes[cluster] == least:
                break
            if sizes[labels[row]] > least:
                sizes[labels[row]] -= 1
                sizes[cluster] += 1
                labels[row] = cluster
    return labels
