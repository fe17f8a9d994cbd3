"""DBSCAN and HDBSCAN on rows, by scikit-learn, in memory that grows with the rows.

M. Ester et al., "A density-based algorithm for discovering clusters", 1996; R. Campello
et al., "Density-based clustering based on hierarchical density estimates", 2013.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree
from sklearn.cluster import DBSCAN, HDBSCAN

from clustering_protocols.algorithms.dbscan import knee_of
from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.errors import ProtocolFailed


def dbscan_of_rows(
    X: FloatArray, eps: float, min_samples: int, most_pairs: int
) -> IntArray:
    """Return labels (n,) of rows X (n, width); noise is -1.

    Parameters
    ----------
    eps : float
        Rows within this distance are neighbours.
    min_samples : int
        Neighbours of a core row, itself among them.
    most_pairs : int
        Of neighbours that may be listed.

    Raises
    ------
    ProtocolFailed
        If the lists of neighbours would be longer.
    """
    counts = cKDTree(X).query_ball_point(X, eps, return_length=True, workers=-1)
    pairs = int(np.sum(counts))
    if pairs > most_pairs:
        raise ProtocolFailed(
            f"Within eps = {eps:g} lie {pairs} pairs of rows; there is room for "
            f"{most_pairs}. Choose a smaller eps."
        )
    # by a tree: the other way loses digits where distances are small
    found = DBSCAN(eps=eps, min_samples=min_samples, algorithm="kd_tree").fit(X)
    labels: IntArray = found.labels_.astype(np.int64)
    return labels


def knee_of_rows(X: FloatArray, min_samples: int) -> float:
    """Return an eps for rows X (n, width); see :func:`dbscan.knee`."""
    count = min(min_samples, len(X))
    distances, _ = cKDTree(X).query(X, [count], workers=-1)
    return knee_of(distances[:, 0])


def hdbscan(X: FloatArray, min_cluster_size: int, min_samples: int) -> IntArray:
    """Return labels (n,) of rows X (n, width); noise is -1.

    Parameters
    ----------
    min_cluster_size : int
        Fewer rows are no cluster.
    min_samples : int
        Neighbours by whose distance density is measured, the row itself among them.
    """
    found = HDBSCAN(
        min_cluster_size=min_cluster_size,
        min_samples=min(min_samples, len(X)),
        algorithm="kd_tree",
        copy=True,
    ).fit(X)
    labels: IntArray = found.labels_.astype(np.int64)
    return labels
