"""DBSCAN on condensed distances, without neighbour lists.

Labels are those of scikit-learn's DBSCAN on the same distances: clusters are numbered
by their first core row, a border row goes to the lowest number, noise is -1. Lists of
neighbours, which it keeps, can outgrow the distances; here there is one flag per row.

M. Ester et al., "A density-based algorithm for discovering clusters", 1996.
"""

from __future__ import annotations

import numpy as np

from clustering_protocols.algorithms.condensed_distances import n_rows, nearest, square
from clustering_protocols.numerics.kernels import in_c
from clustering_protocols.records.arrays import FloatArray, IntArray


def dbscan(condensed: FloatArray, eps: float, min_samples: int) -> IntArray:
    """Return labels (n,).

    condensed: float64 (n (n - 1) / 2,); distances.
    eps: rows within this distance are neighbours.
    min_samples: neighbours of a core row, itself among them.
    """
    n = n_rows(condensed)
    labels: IntArray = np.empty(n, dtype=np.int64)
    _label_rows(condensed, eps, min_samples, labels)
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
    knee_value = curve[int(np.argmax(height))]
    larger = curve[curve > knee_value]
    return (
        float((knee_value + larger[0]) / 2)
        if len(larger)
        else float(knee_value) * (1 + 1e-9)
    )


@in_c("labels")
def _label_rows(
    condensed: FloatArray, eps: float, min_samples: int, labels: IntArray
) -> None:
    near = square(condensed) <= eps
    core = near.sum(axis=1) >= min_samples
    labels[:] = -1
    number = 0
    for first in np.flatnonzero(core).tolist():
        if labels[first] < 0:
            reached = np.arange(len(labels)) == first
            while len(new := np.flatnonzero(reached & (labels < 0))):
                labels[new] = number
                reached = core & near[new].any(axis=0)
            number += 1
    for border in np.flatnonzero(~core & (near & core).any(axis=1)).tolist():
        labels[border] = labels[core & near[border]].min()
