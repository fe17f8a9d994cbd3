"""Whether half of the rows foretell which rows of the other half are together.

R. Tibshirani and G. Walther, "Cluster validation by prediction strength", 2005: rows are
split in two, both halves are clustered, and rows of one half are labelled by the nearest
centroid of the other as well. Of each own cluster of a half, the share of pairs of rows
that the other half keeps together; the least of all clusters is the strength. Mean of
splits and of both directions.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clustering_protocols.algorithms.kmeans import nearest
from clustering_protocols.quality.halves import can_differ, cluster_half
from clustering_protocols.records.arrays import FloatArray, IntArray

SPLITS: Final = 5


def prediction_strength(
    X: FloatArray, n_clusters: int, rng: np.random.Generator, n_splits: int = SPLITS
) -> float | None:
    """Return the mean strength: 1 if every pair is foretold in every cluster.

    None where nothing can differ or be found: one cluster, or fewer different rows in
    some half than clusters.

    X: float64 (n, width).
    """
    if not can_differ(X, n_clusters):
        return None
    found = []
    for _ in range(n_splits):
        order = rng.permutation(len(X))
        halves = [X[np.sort(part)] for part in np.array_split(order, 2)]
        here, there = (cluster_half(half, n_clusters, rng) for half in halves)
        if here is None or there is None:
            return None
        for half, own, other in ((halves[0], here, there), (halves[1], there, here)):
            found.append(strength(own.labels, nearest(half, other.centroids)))
    return float(np.mean(found))


def strength(own: IntArray, foretold: IntArray) -> float:
    """Return the least share of pairs of an own cluster that are foretold together.

    Clusters of one row have no pair and do not count.
    """
    table = np.zeros((int(own.max()) + 1, int(foretold.max()) + 1))
    np.add.at(table, (own, foretold), 1)
    sizes = table.sum(axis=1)
    several = sizes > 1
    pairs = (table * (table - 1)).sum(axis=1)[several]
    return float((pairs / (sizes * (sizes - 1))[several]).min(initial=1.0))
