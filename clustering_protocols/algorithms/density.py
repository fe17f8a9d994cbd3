"""DBSCAN and HDBSCAN on rows, by scikit-learn, in memory that grows with the rows.

M. Ester et al., "A density-based algorithm for discovering clusters", 1996; R. Campello
et al., "Density-based clustering based on hierarchical density estimates", 2013.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.spatial import cKDTree
from sklearn.cluster import DBSCAN, HDBSCAN

from clustering_protocols.algorithms.dbscan import knee_of
from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.records.arrays import FloatArray, IntArray

_EQUAL: Final = 1e-9
"""Of the widest column: what rows that are equal differ by in rounding."""


def dbscan_of_rows(
    X: FloatArray, eps: float, min_samples: int, most_pairs: int
) -> IntArray:
    """Return labels (n,) of rows X (n, width); noise is -1.

    eps: rows within this distance are neighbours.
    min_samples: neighbours of a core row, itself among them.
    most_pairs: of neighbours that may be listed.

    Raises ProtocolFailed if the lists of neighbours would be longer.
    """
    counts = cKDTree(X).query_ball_point(X, eps, return_length=True, workers=-1)
    pairs = int(np.sum(counts))
    if pairs > most_pairs:
        raise ProtocolFailed(
            f"Within eps = {eps:g} lie {pairs} pairs of rows; there is room for "
            f"{most_pairs}. Choose a smaller eps."
        )
    # by a tree: the other way loses digits where distances are small
    model = DBSCAN(eps=eps, min_samples=min_samples, algorithm="kd_tree").fit(X)
    labels: IntArray = model.labels_.astype(np.int64)
    return labels


def knee_of_rows(X: FloatArray, min_samples: int) -> float:
    """Return an eps for rows X (n, width); see :func:`dbscan.knee`."""
    count = min(min_samples, len(X))
    distances, _ = cKDTree(X).query(X, [count], workers=-1)
    return knee_of(distances[:, 0])


def hdbscan(X: FloatArray, min_cluster_size: int, min_samples: int) -> IntArray:
    """Return labels (n,) of rows X (n, width); noise is -1.

    Ties may part equal rows: they get the label that most of them have.

    min_cluster_size: fewer rows are no cluster.
    min_samples: neighbours by whose distance density is measured, the row itself among
        them.
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
    majority[groups[order]] = group_labels[
        order
    ]  # the last of each group is the most frequent
    return majority[equal]
