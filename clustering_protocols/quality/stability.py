"""Whether other rows of the same kind would have given the same clusters.

Halves of the rows are drawn without replacement, each is clustered by k-means, and all
rows are labelled by the nearest centroid of each half: the mean adjusted Rand index of
all pairs of these labellings (A. Ben-Hur, A. Elisseeff, I. Guyon, "A stability based
method for discovering structure in clustered data", 2002, with labels for all rows as
in T. Lange, V. Roth, M. L. Braun, J. M. Buhmann, "Stability-based validation of
clustering solutions", 2004).
"""

from __future__ import annotations

from itertools import combinations
from typing import Final

import numpy as np

from clustering_protocols.algorithms.kmeans import nearest
from clustering_protocols.quality.halves import can_differ, cluster_half
from clustering_protocols.records.arrays import FloatArray, IntArray

HALVES: Final = 10
"""B: how many halves are drawn."""


def stability(
    X: FloatArray,
    n_clusters: int,
    rng: np.random.Generator,
    n_halves: int = HALVES,
) -> float | None:
    """Return the mean agreement of clusterings of halves: 1 if all are the same.

    None where nothing can differ or be found: one cluster, or fewer different rows in
    some half than clusters.

    X: float64 (n, width).
    """
    if not can_differ(X, n_clusters):
        return None
    labels = []
    for _ in range(n_halves):
        half = X[np.sort(rng.permutation(len(X))[: len(X) // 2])]
        found = cluster_half(half, n_clusters, rng)
        if found is None:
            return None
        labels.append(nearest(X, found.centroids))
    agreements = [agreement(*pair, n_clusters) for pair in combinations(labels, 2)]
    return float(np.mean(agreements))


def agreement(one: IntArray, other: IntArray, n_clusters: int) -> float:
    """Return the adjusted Rand index of two labellings by numbers below ``n_clusters``.

    The same as :func:`~clustering_protocols.numerics.scores.adjusted_rand`, which looks
    for the labels first: that takes fifty times as long on a few hundred rows, and a
    session with several runs asks for hundreds.

    one, other: int64 (n,); n ≥ 1, entries in [0, n_clusters).
    """
    table = np.bincount(one * n_clusters + other, minlength=n_clusters**2)
    table = table.reshape(n_clusters, n_clusters)
    # pairs of rows that are together in both, in one, in the other, and all
    both, here, there, pairs = (
        int((counts * (counts - 1)).sum())
        for counts in (table, table.sum(axis=1), table.sum(axis=0), table.sum())
    )
    if here == there == both:  # also where no rows are together, or all are
        return 1.0
    expected = here * there / pairs
    return (both - expected) / ((here + there) / 2 - expected)
