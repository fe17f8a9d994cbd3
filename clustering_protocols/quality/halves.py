"""Halves of the rows, clustered: what repeats if the clusters are of more than chance."""

from __future__ import annotations

from typing import Final

import numpy as np

from clustering_protocols.algorithms.kmeans import Clustering, draw_starts, kmeans
from clustering_protocols.records.arrays import FloatArray

_STARTS: Final = 3
_MAX_ITER: Final = 100


def can_differ(X: FloatArray, n_clusters: int) -> bool:
    """Return whether clusters of halves could differ: several, and fewer than rows.

    X: float64 (n, width), whole.
    """
    return n_clusters >= 2 and len(X) // 2 > n_clusters


def cluster_half(
    half: FloatArray, n_clusters: int, rng: np.random.Generator
) -> Clustering | None:
    """Return the best of three clusterings; None of too few different rows.

    half: float64 (n, width).
    """
    if len(np.unique(half, axis=0)) <= n_clusters:
        return None
    return kmeans(half, draw_starts(half, n_clusters, _STARTS, rng), _MAX_ITER)
