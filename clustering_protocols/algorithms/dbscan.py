"""DBSCAN and HDBSCAN on rows, by scikit-learn.

Clusters are numbered by their first core row, a border row joins the lowest-numbered
cluster that has a core row within ``eps``, and noise gets the label -1.

M. Ester et al., "A density-based algorithm for discovering clusters", 1996; R. Campello
et al., "Density-based clustering based on hierarchical density estimates", 2013.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.spatial import cKDTree
from sklearn.cluster import DBSCAN, HDBSCAN

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.records.arrays import FloatArray, IntArray

_EQUAL: Final = 1e-9
"""Rows count as equal if they differ by less than this fraction of the widest range."""


def dbscan(X: FloatArray, eps: float, min_samples: int, most_pairs: int) -> IntArray:
    """Return the cluster label (n,) of each row of X (n, width); noise gets -1.

    eps: the distance within which two rows are neighbours.
    min_samples: the minimum number of neighbours of a core row, including itself.
    most_pairs: the largest number of pairs of neighbours that fits into memory.

    Raises ProtocolFailed if more pairs than ``most_pairs`` are neighbours.
    """
    counts = cKDTree(X).query_ball_point(X, eps, return_length=True, workers=-1)
    pairs = int(np.sum(counts))
    if pairs > most_pairs:
        raise ProtocolFailed(
            f"{pairs} pairs of rows lie within eps = {eps:g}; memory suffices for "
            f"{most_pairs}. Choose a smaller eps, or a larger memory_limit."
        )
    # scikit-learn's brute-force search would lose digits of small distances
    model = DBSCAN(eps=eps, min_samples=min_samples, algorithm="kd_tree").fit(X)
    labels: IntArray = model.labels_.astype(np.int64)
    return labels


def choose_eps(X: FloatArray, min_samples: int) -> float:
    """Choose ``eps`` at the knee of the sorted distances to the k-th nearest row.

    k is ``min_samples``, and each row of X (n, width) counts as its own nearest row. The
    knee is the point at which the curve is farthest below the line from its first to
    its last point (V. Satopaa et al., "Finding a kneedle in a haystack", 2011, without
    smoothing). The returned value lies halfway between the distance at the knee and the
    next larger one, so that no row's k-th nearest row is exactly ``eps`` away.
    """
    count = min(min_samples, len(X))
    distances, _ = cKDTree(X).query(X, [count], workers=-1)
    curve = np.sort(distances[:, 0])
    rise = (curve[-1] - curve[0]) or 1.0
    height = np.linspace(0.0, 1.0, len(curve)) - (curve - curve[0]) / rise
    knee_value = curve[int(np.argmax(height))]
    larger = curve[curve > knee_value]
    if not len(larger):
        return float(knee_value) * (1 + 1e-9)
    return float((knee_value + larger[0]) / 2)


def hdbscan(X: FloatArray, min_cluster_size: int, min_samples: int) -> IntArray:
    """Return the HDBSCAN label (n,) of each row of X (n, width); noise gets -1.

    If scikit-learn gives equal rows different labels, all of these rows get the label
    that is most frequent among them.

    min_cluster_size: the minimum number of rows in a cluster.
    min_samples: the distance to the min_samples-th nearest row, counting the row itself
        as the first, measures the density at a row.
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
    # counts ascend, so the last label assigned to a group is its most frequent one
    majority[groups[order]] = group_labels[order]
    return majority[equal]
