"""In which order clusters are numbered: by told size, ties by the centroid.

That is the published centroid, or where none is published the one that all parties read:
a reader of sizes alone learns nothing by the order of equal ones. Where parties read no
common centroid (split columns, masked spaces) equal sizes stand as they were found. Only
rows could tell these clusters apart: their order is drawn in each session, so they would
come out no steadier, and numbers would say whose row is in which cluster.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from clustering_protocols.records.arrays import FloatArray, IntArray, Spec
from clustering_protocols.records.record import Record


class ClusterOrder(Record):
    """Memory: the found number of each cluster, in the order of the new numbers."""

    kind = "cluster-order"

    order: Annotated[IntArray, Spec("k", low=0)]


def order_by_size(sizes: IntArray, centroids: FloatArray | None = None) -> IntArray:
    """Return the clusters (k,) by size, the largest first.

    Equal sizes stand by the centroid, feature by feature; else as they were found.

    sizes: int64 (k,); as they are told: what nobody is told decides nothing.
    centroids: float64 (k, m) or (0, m); as they are told.
    """
    found, keys = np.arange(len(sizes)), [-sizes]
    if centroids is not None and len(centroids) == len(sizes):
        keys += list(centroids.T)
    return np.lexsort((found, *keys[::-1])).astype(np.int64)


def order_told_first(
    n_clusters: int,
    told: IntArray,
    sizes: IntArray,
    centroids: FloatArray | None = None,
    common: FloatArray | None = None,
) -> IntArray:
    """Return all clusters: those of which outsiders are told by size, then the others.

    told: int64 (p,); the clusters of which outsiders are told.
    sizes, centroids: of these, as they are told; no centroids (0, m) where none are.
    common: float64 (k, m); centroids that all parties read, for what is not told.
    """
    others = np.setdiff1d(np.arange(n_clusters), told)
    if common is not None:
        others = others[order_by_size(np.zeros_like(others), common[others])]
        if centroids is None or not len(centroids):
            centroids = common[told]
    return np.concatenate([told[order_by_size(sizes, centroids)], others])
