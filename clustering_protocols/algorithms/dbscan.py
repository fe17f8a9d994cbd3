"""DBSCAN on condensed distances and on rows, and HDBSCAN on rows.

On condensed distances, labels are those of scikit-learn's DBSCAN: clusters are numbered by
their first core row, a border row joins its lowest cluster, noise is -1. scikit-learn
itself keeps lists of neighbours, which can outgrow the distances; the loop here needs one
flag per row. On rows, scikit-learn's own DBSCAN and HDBSCAN run.

M. Ester et al., "A density-based algorithm for discovering clusters", 1996; R. Campello
et al., "Density-based clustering based on hierarchical density estimates", 2013.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.spatial import cKDTree
from sklearn.cluster import DBSCAN, HDBSCAN

from clustering_protocols.algorithms.condensed_distances import (
    count_rows,
    nearest_rows,
    to_square_matrix,
)
from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.numerics.kernels import in_c
from clustering_protocols.records.arrays import FloatArray, IntArray


def dbscan(condensed: FloatArray, eps: float, min_samples: int) -> IntArray:
    """Return labels (n,); noise is -1.

    condensed: float64 (n (n - 1) / 2,); distances.
    eps: rows within this distance are neighbours.
    min_samples: fewest neighbours of a core row, the row itself included.
    """
    n = count_rows(condensed)
    labels: IntArray = np.empty(n, dtype=np.int64)
    _label_rows(condensed, eps, min_samples, labels)
    return labels


def choose_eps(condensed: FloatArray, min_samples: int) -> float:
    """Return an eps: the knee of the sorted distances to the k-th nearest row.

    k is ``min_samples``, the row itself included. The knee is where the curve is
    farthest below the line from its first to its last point (V. Satopaa et al.,
    "Finding a kneedle in a haystack", 2011, without smoothing); eps lies half way to
    the next larger value, so that no pair is exactly at eps.
    """
    n = count_rows(condensed)
    return _eps_at_knee(nearest_rows(condensed, min(min_samples, n))[1][:, -1])


def _eps_at_knee(distances: FloatArray) -> float:
    """Return the eps of :func:`knee` from the distances (n,) to the k-th nearest row."""
    curve = np.sort(distances)
    rise = (curve[-1] - curve[0]) or 1.0
    height = np.linspace(0.0, 1.0, len(curve)) - (curve - curve[0]) / rise
    knee_value = curve[int(np.argmax(height))]
    larger = curve[curve > knee_value]
    if not len(larger):
        return float(knee_value) * (1 + 1e-9)
    return float((knee_value + larger[0]) / 2)


@in_c("labels")
def _label_rows(
    condensed: FloatArray, eps: float, min_samples: int, labels: IntArray
) -> None:
    near = to_square_matrix(condensed) <= eps
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


_EQUAL: Final = 1e-9
"""By how much rounding may separate equal rows, as a share of the widest column's range."""


def dbscan_of_rows(
    X: FloatArray, eps: float, min_samples: int, most_pairs: int
) -> IntArray:
    """Return labels (n,) of rows X (n, width); noise is -1.

    eps: rows within this distance are neighbours.
    min_samples: fewest neighbours of a core row, the row itself included.
    most_pairs: largest number of pairs of neighbours that memory can hold.

    Raises ProtocolFailed if there are more.
    """
    counts = cKDTree(X).query_ball_point(X, eps, return_length=True, workers=-1)
    pairs = int(np.sum(counts))
    if pairs > most_pairs:
        raise ProtocolFailed(
            f"{pairs} pairs of rows lie within eps = {eps:g}; there is room for "
            f"{most_pairs}. Choose a smaller eps."
        )
    # brute force would lose digits of small distances
    model = DBSCAN(eps=eps, min_samples=min_samples, algorithm="kd_tree").fit(X)
    labels: IntArray = model.labels_.astype(np.int64)
    return labels


def choose_eps_of_rows(X: FloatArray, min_samples: int) -> float:
    """Return an eps for rows X (n, width); see :func:`knee`."""
    count = min(min_samples, len(X))
    distances, _ = cKDTree(X).query(X, [count], workers=-1)
    return _eps_at_knee(distances[:, 0])


def hdbscan(X: FloatArray, min_cluster_size: int, min_samples: int) -> IntArray:
    """Return labels (n,) of rows X (n, width); noise is -1.

    HDBSCAN may give equal rows different labels; here they all get the most frequent one.

    min_cluster_size: fewest rows of a cluster.
    min_samples: the distance to the neighbour of this rank measures density; the row
        itself has rank 1.
    """
    model = HDBSCAN(
        min_cluster_size=min_cluster_size,
        min_samples=min(min_samples, len(X)),
        algorithm="kd_tree",
        copy=True,
    ).fit(X)
    labels: IntArray = model.labels_.astype(np.int64)
    step = _EQUAL * np.ptp(X, axis=0).max(initial=0.0) or 1.0
    _, equal = np.unique(np.round(X / step), axis=0, return_inverse=True)
    (groups, group_labels), counts = np.unique(
        [equal, labels], axis=1, return_counts=True
    )
    order = np.lexsort((counts, groups))
    majority = np.empty(len(X), dtype=np.int64)
    # by ascending count: the last label assigned to a group is its most frequent one
    majority[groups[order]] = group_labels[order]
    return majority[equal]
