"""The equations, which both roles and the reference use."""

import numpy as np

from clustering_protocols.algorithms.kmeans import (
    draw_starts,
    kmeans,
    nearest_centroids,
)
from clustering_protocols.records.arrays import FloatArray, IntArray


def cluster(X: FloatArray, k: int, rng: np.random.Generator) -> FloatArray:
    """Return the centres (k, m) of the k-means clusters of rows (n, m)."""
    return kmeans(X, draw_starts(X, k, 10, rng), 300).centroids


def merge(centres: FloatArray, sizes: FloatArray, k: int) -> FloatArray:
    """Return the means (k, m) of groups of centres, weighted by their sizes."""
    rng = np.random.default_rng(0)
    labels = nearest_centroids(centres, cluster(centres, k, rng))
    members: FloatArray = (labels == np.arange(k)[:, None]) * sizes
    means: FloatArray = members @ centres / members.sum(axis=1, keepdims=True)
    return means


def label(X: FloatArray, centres: FloatArray) -> IntArray:
    """Return the number of the nearest centre of each row."""
    return nearest_centroids(X, centres)
