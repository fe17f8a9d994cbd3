"""Whether clusterings of halves of the rows agree: structure repeats, chance does not.

Stability: halves are drawn without replacement, each is clustered by k-means, and all
rows are labelled by the nearest centroid of each half: the mean adjusted Rand index of
all pairs of these labellings (A. Ben-Hur, A. Elisseeff, I. Guyon, "A stability based
method for discovering structure in clustered data", 2002, with labels for all rows as
in T. Lange, V. Roth, M. L. Braun, J. M. Buhmann, "Stability-based validation of
clustering solutions", 2004).

Prediction strength (R. Tibshirani and G. Walther, "Cluster validation by prediction
strength", 2005): rows are split in two, both halves are clustered, and rows of one half
are labelled by the nearest centroid of the other as well. Of each own cluster of a half,
the share of pairs of rows that the other half keeps together; the least of all clusters
is the strength. Mean of splits and of both directions.
"""

from __future__ import annotations

from itertools import combinations
from typing import Final

import numpy as np

from clustering_protocols.algorithms.kmeans import (
    Clustering,
    draw_starts,
    kmeans,
    nearest,
)
from clustering_protocols.records.arrays import FloatArray, IntArray

HALVES: Final = 10
"""B: how many halves are drawn."""
SPLITS: Final = 5
_STARTS: Final = 3
_MAX_ITER: Final = 100


def stability(X: FloatArray, n_clusters: int, rng: np.random.Generator) -> float | None:
    """Return the mean agreement of clusterings of halves: 1 if all are the same.

    None for one cluster, or where some half has fewer different rows than clusters.

    X: float64 (n, width).
    """
    labels = []
    for _ in range(HALVES):
        half = X[np.sort(rng.permutation(len(X))[: len(X) // 2])]
        clustering = _cluster(X, half, n_clusters, rng)
        if clustering is None:
            return None
        labels.append(nearest(X, clustering.centroids))
    agreements = [agreement(*pair, n_clusters) for pair in combinations(labels, 2)]
    return float(np.mean(agreements))


def prediction_strength(
    X: FloatArray, n_clusters: int, rng: np.random.Generator
) -> float | None:
    """Return the mean strength: 1 if every pair is predicted in every cluster.

    None as in :func:`stability`.

    X: float64 (n, width).
    """
    strengths = []
    for _ in range(SPLITS):
        order = rng.permutation(len(X))
        halves = [X[np.sort(part)] for part in np.array_split(order, 2)]
        first, second = (_cluster(X, half, n_clusters, rng) for half in halves)
        if first is None or second is None:
            return None
        for half, own, other in (
            (halves[0], first, second),
            (halves[1], second, first),
        ):
            strengths.append(strength(own.labels, nearest(half, other.centroids)))
    return float(np.mean(strengths))


def _cluster(
    X: FloatArray, half: FloatArray, n_clusters: int, rng: np.random.Generator
) -> Clustering | None:
    can_differ = n_clusters >= 2 and len(X) // 2 > n_clusters
    if not can_differ or len(np.unique(half, axis=0)) <= n_clusters:
        return None
    return kmeans(half, draw_starts(half, n_clusters, _STARTS, rng), _MAX_ITER)


def agreement(first: IntArray, second: IntArray, n_clusters: int) -> float:
    """Return the adjusted Rand index of two labellings by numbers below ``n_clusters``.

    The same as :func:`~clustering_protocols.numerics.scores.adjusted_rand`, which looks
    for the labels first: that takes fifty times as long on a few hundred rows, and a
    session with several runs asks for hundreds.

    first, second: int64 (n,); n ≥ 1, entries in [0, n_clusters).
    """
    table = np.bincount(first * n_clusters + second, minlength=n_clusters**2)
    table = table.reshape(n_clusters, n_clusters)
    # pairs of rows that are together in both, in one, in the other, and all
    both, in_first, in_second, pairs = (
        int((counts * (counts - 1)).sum())
        for counts in (table, table.sum(axis=1), table.sum(axis=0), table.sum())
    )
    if in_first == in_second == both:  # also where no rows are together, or all are
        return 1.0
    expected = in_first * in_second / pairs
    return (both - expected) / ((in_first + in_second) / 2 - expected)


def strength(own: IntArray, predicted: IntArray) -> float:
    """Return the least share of pairs of an own cluster that are predicted together.

    Clusters of one row have no pair and do not count.
    """
    table = np.zeros((int(own.max()) + 1, int(predicted.max()) + 1))
    np.add.at(table, (own, predicted), 1)
    sizes = table.sum(axis=1)
    several = sizes > 1
    pairs = (table * (table - 1)).sum(axis=1)[several]
    return float((pairs / (sizes * (sizes - 1))[several]).min(initial=1.0))
