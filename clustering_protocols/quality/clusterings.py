"""Figures of what k-means found."""

from __future__ import annotations

from clustering_protocols.algorithms.kmeans import Clustering
from clustering_protocols.arrays import FloatArray
from clustering_protocols.figures import Figures

from .rows import of_rows


def of_clustering(X: FloatArray, found: Clustering) -> Figures:
    """Return the figures of a clustering on rows X (n, F), those of an embedding too.

    Computed on X, where what was clustered may be an embedding of it.
    """
    return of_rows(X, found.labels, n_iter=found.n_iter, converged=found.converged)
