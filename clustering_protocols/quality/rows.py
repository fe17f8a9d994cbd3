"""Figures computed from labelled rows in blocks, without a matrix of pairwise distances."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from scipy.spatial.distance import cdist

from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.numerics.row_blocks import ArrayRows, iterate_slices
from clustering_protocols.records.arrays import FloatArray, IntArray

from . import around_means, sums as formulas

_BLOCK_ROWS: Final = 4096
_BLOCK_ITEMS: Final = 1 << 22
_PAIRS: Final = 1 << 16  # number of distances in memory at once


def figures_of_rows(
    X: FloatArray,
    labels: IntArray,
    *,
    memberships: FloatArray | None = None,
    silhouette: bool = False,
    **run: Any,
) -> Figures:
    """Compute the quality figures of labelled rows with O(block × k) memory.

    X: float64 (n, F).
    labels: int64 (n,); the cluster of each row; rows with label -1 are ignored.
    memberships: float64 (n, k); if given, the partition coefficient and the Xie-Beni
        index are computed too, the latter around the means weighted by μ².
    silhouette: whether to compute the exact silhouette, which takes n² distances.
    **run: ``n_iter`` and ``converged`` of the clustering.

    Raises ValueError if no row belongs to a cluster.
    """
    clustered = labels >= 0
    if not clustered.all():
        X, labels = X[clustered], labels[clustered]
        memberships = None if memberships is None else memberships[clustered]
    if not len(labels):
        raise ValueError("no row belongs to a cluster")
    counts = np.bincount(labels)
    n_clusters = int(np.count_nonzero(counts))
    figures: dict[str, Any] = {}
    if memberships is not None:
        figures = _membership_figures(X, memberships, labels)
    if silhouette and formulas.are_comparable(n_clusters, len(labels)):
        figures["silhouette"] = _silhouette(X, labels, counts)
    return around_means.compute_figures(ArrayRows(X), labels, **figures, **run)


def _membership_figures(
    X: FloatArray, U: FloatArray, labels: IntArray
) -> dict[str, float | None]:
    n, k = U.shape
    total, weights = np.zeros((k, X.shape[1])), np.zeros(k)
    for rows in iterate_slices(n, _BLOCK_ROWS):
        degrees = np.square(U[rows])
        total += degrees.T @ X[rows]
        weights += degrees.sum(axis=0)
    means = total / np.where(weights > 0, weights, 1.0)[:, None]
    compactness = 0.0
    for rows in iterate_slices(n, max(_BLOCK_ITEMS // k, 1)):
        D = cdist(X[rows], means, "sqeuclidean")
        compactness += float((np.square(U[rows]) * D).sum())
    nonempty = weights > 0
    return {
        "partition_coefficient": formulas.partition_coefficient(
            weights.sum(), n, np.bincount(labels, minlength=k)
        ),
        "xie_beni": formulas.xie_beni(
            compactness, n, formulas.squared_separations(means[nonempty])
        ),
    }


def _silhouette(X: FloatArray, labels: IntArray, counts: IntArray) -> float:
    order = np.argsort(labels, kind="stable")
    nonempty = np.flatnonzero(counts)
    firsts = (np.cumsum(counts) - counts)[nonempty]
    sorted_rows, total = X[order], 0.0
    for rows in iterate_slices(len(X), max(_PAIRS // len(X), 1)):
        sums = np.zeros((len(labels[rows]), len(counts)))
        sums[:, nonempty] = np.add.reduceat(cdist(X[rows], sorted_rows), firsts, axis=1)
        total += float(formulas.silhouettes(sums, labels[rows], counts).sum())
    return formulas.mean_silhouette(total, len(X))
