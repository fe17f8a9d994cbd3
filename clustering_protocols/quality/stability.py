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

from clustering_protocols.algorithms.kmeans import draw_starts, kmeans, nearest
from clustering_protocols.arrays import FloatArray
from clustering_protocols.metrics import adjusted_rand

HALVES: Final = 10
"""B: how many halves are drawn."""
_STARTS: Final = 3
_MAX_ITER: Final = 100


def stability(
    X: FloatArray,
    n_clusters: int,
    rng: np.random.Generator,
    n_halves: int = HALVES,
) -> float | None:
    """Return the mean agreement of clusterings of halves: 1 if all are the same.

    None where nothing can differ or be found: one cluster, or fewer different rows in
    some half than clusters.

    Parameters
    ----------
    X : float64 array of shape (n, width)
    n_clusters : int
    """
    if n_clusters < 2 or len(X) // 2 <= n_clusters:
        return None
    labels = []
    for _ in range(n_halves):
        half = X[np.sort(rng.permutation(len(X))[: len(X) // 2])]
        if len(np.unique(half, axis=0)) <= n_clusters:
            return None
        starts = draw_starts(half, n_clusters, _STARTS, rng)
        found = kmeans(half, starts, _MAX_ITER)
        labels.append(nearest(X, found.centroids))
    agreements = [adjusted_rand(*pair) for pair in combinations(labels, 2)]
    return float(np.mean(agreements))
