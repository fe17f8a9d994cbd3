"""DBSCAN on condensed distances, without neighbour lists.

Labels are those of scikit-learn's DBSCAN on the same distances: clusters are numbered
by their first core row, a border row goes to the lowest number, noise is -1. Lists of
neighbours, which it keeps, can outgrow the distances; here there is one flag per row.

M. Ester et al., "A density-based algorithm for discovering clusters", 1996.
"""

from __future__ import annotations

import numpy as np

from clustering_protocols.algorithms.condensed_distances import n_rows, nearest
from clustering_protocols.numerics.compilation import compile_kernel, inline_helper
from clustering_protocols.records.arrays import FloatArray, IntArray


def dbscan(condensed: FloatArray, eps: float, min_samples: int) -> IntArray:
    """Return labels (n,).

    condensed: float64 (n (n - 1) / 2,); distances.
    eps: rows within this distance are neighbours.
    min_samples: neighbours of a core row, itself among them.
    """
    n = n_rows(condensed)
    labels: IntArray = np.empty(n, dtype=np.int64)
    _label(condensed, eps, min_samples, labels)
    return labels


def knee(condensed: FloatArray, min_samples: int) -> float:
    """Return an eps: the knee of the sorted distances to the k-th nearest row.

    k is ``min_samples``, the row itself among them. The knee is where the curve is
    farthest below the line from its first to its last point (V. Satopaa et al.,
    "Finding a kneedle in a haystack", 2011, without smoothing); eps lies half way to
    the next larger value, so that no pair is exactly at eps.
    """
    n = n_rows(condensed)
    return knee_of(nearest(condensed, min(min_samples, n))[1][:, -1])


def knee_of(distances: FloatArray) -> float:
    """Return the same eps from the distances (n,) to the k-th nearest row."""
    curve = np.sort(distances)
    rise = curve[-1] - curve[0]
    if rise == 0:
        return float(curve[0]) * (1 + 1e-9)
    height = np.linspace(0.0, 1.0, len(curve)) - (curve - curve[0]) / rise
    at = curve[int(np.argmax(height))]
    beyond = curve[curve > at]
    return float((at + beyond[0]) / 2) if len(beyond) else float(at) * (1 + 1e-9)


@inline_helper
def _root(parents: IntArray, i: int) -> int:
    while parents[i] != i:
        parents[i] = parents[parents[i]]
        i = parents[i]
    return i


@compile_kernel
def _label(
    condensed: FloatArray, eps: float, min_samples: int, labels: IntArray
) -> None:
    n = len(labels)
    neighbors = np.ones(n, np.int64)
    at = 0
    for i in range(n):
        for j in range(i + 1, n):
            if condensed[at] <= eps:
                neighbors[i] += 1
                neighbors[j] += 1
            at += 1
    core = neighbors >= min_samples
    parents = np.arange(n)
    at = 0
    for i in range(n):
        for j in range(i + 1, n):
            if condensed[at] <= eps and core[i] and core[j]:
                a, b = _root(parents, i), _root(parents, j)
                parents[max(a, b)] = min(a, b)
            at += 1
    count = 0
    for i in range(n):
        labels[i] = -1
        if core[i]:
            root = _root(parents, i)
            if root == i:
                labels[i] = count
                count += 1
            else:
                labels[i] = labels[root]
    at = 0
    for i in range(n):
        for j in range(i + 1, n):
            if condensed[at] <= eps and core[i] != core[j]:
                border, inside = (j, i) if core[i] else (i, j)
                number = labels[inside]
                if labels[border] < 0 or number < labels[border]:
                    labels[border] = number
            at += 1
