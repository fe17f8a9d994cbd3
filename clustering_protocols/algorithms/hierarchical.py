"""Agglomerative clustering of condensed distances with the fastcluster library."""

from __future__ import annotations

import fastcluster
import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from clustering_protocols.algorithms.condensed_distances import count_rows
from clustering_protocols.records.arrays import FloatArray, IntArray


def cluster_hierarchically(
    condensed: FloatArray, n_clusters: int, linkage: str
) -> IntArray:
    """Return the cluster (n,) of each row after cutting the tree of merges at n_clusters.

    Equal rows are never separated, so there are no more clusters than distinct rows.

    condensed: float64 (n (n - 1) / 2,); distances, not squared, of which one copy is
        made.
    n_clusters: at most n.
    linkage: single, complete, average or ward.

    D. Müllner, "fastcluster: fast hierarchical, agglomerative clustering routines for R
    and Python", 2013.
    """
    n = count_rows(condensed)
    # fastcluster always copies its input; preserve_input=False avoids a second copy
    merges = fastcluster.linkage(condensed, linkage, preserve_input=False)
    n_equal = np.count_nonzero(merges[:, 2] == 0)
    joins = merges[: max(n - n_clusters, n_equal), :2].astype(np.int64)
    parents = n + np.arange(len(joins))
    edges = (
        np.concatenate([joins[:, 0], joins[:, 1]]),
        np.concatenate([parents, parents]),
    )
    size = n + len(joins)
    tree = sparse.coo_array((np.ones(2 * len(joins), np.int8), edges), (size, size))
    labels = connected_components(tree, directed=False)[1][:n]
    # number the clusters in the order of their first rows
    _, first, numbers = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[numbers]
