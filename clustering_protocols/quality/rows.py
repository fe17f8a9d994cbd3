"""Quality figures of labelled rows, computed in blocks without a matrix of all distances.

A first pass over the rows computes the means, and a second one sums around them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import numpy as np

from clustering_protocols.algorithms.kmeans import Clustering
from clustering_protocols.numerics import row_blocks
from clustering_protocols.numerics.blocks import ONE_THREAD, Engine
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.numerics.row_blocks import (
    ArrayRows,
    RowBlock,
    RowBlocks,
    iterate_slices,
)
from clustering_protocols.records.arrays import FloatArray, IntArray

from . import block_sums, sums as formulas

Labelled = tuple[RowBlock, IntArray]

_BLOCK_ROWS: Final = 4096
_BLOCK_ITEMS: Final = 1 << 22
_PAIRS: Final = 1 << 16  # number of distances in memory at once


def figures_of_clustering(
    X: FloatArray | RowBlocks, clustering: Clustering, engine: Engine = ONE_THREAD
) -> Figures:
    """Compute the quality figures of a clustering of rows X (n, F).

    The figures are computed from X even if an embedding of X was clustered.
    """
    return compute_figures(
        row_blocks.as_row_blocks(X),
        clustering.labels,
        engine,
        n_iter=clustering.n_iter,
        converged=clustering.converged,
    )


def compute_figures(
    rows: RowBlocks, labels: IntArray, engine: Engine = ONE_THREAD, **figures: Any
) -> Figures:
    """Compute the quality figures of labelled rows around the means of their clusters.

    Blocks are added up in order, so that the result has the same bits with any engine.

    labels: int64 (n,); the cluster of each row; no label may be negative.
    **figures: values for further fields of :class:`Figures`.
    """
    counts = np.bincount(labels)
    k = len(counts)
    total = np.zeros((k, rows.shape[1]))
    for added in engine.map(partial(_sum_by_label, k), _labelled_blocks(rows, labels)):
        total += added
    means = total / np.maximum(counts, 1)[:, None]
    kernel = partial(_sum_around_means, means, counts)
    around = sum(
        engine.map(kernel, _labelled_blocks(rows, labels)), np.zeros(2 * k + 1)
    )
    return formulas.figures_from_sums(counts, means, around, **figures)


def _labelled_blocks(rows: RowBlocks, labels: IntArray) -> Iterator[Labelled]:
    # use a small integer type, because labels may be sent to other processes
    narrow = np.min_scalar_type(int(labels.max()))
    for block in rows.blocks():
        yield block, labels[block.span].astype(narrow)


def _sum_by_label(k: int, labelled: Labelled) -> FloatArray:
    block, labels = labelled
    X = block.load()
    sums = np.zeros((k, X.shape[1]))
    block_sums.add_by_label(X, *_identity_scaling(X), labels.astype(np.int64), sums)
    return sums


def _sum_around_means(
    means: FloatArray, counts: IntArray, labelled: Labelled
) -> FloatArray:
    block, labels = labelled
    X = block.load()
    return block_sums.sum_around_means(
        X, _identity_scaling(X), means, labels.astype(np.int64), counts
    )


def _identity_scaling(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    return np.zeros(X.shape[1]), np.ones(X.shape[1])


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
    return compute_figures(ArrayRows(X), labels, **figures, **run)


def _membership_figures(
    X: FloatArray, U: FloatArray, labels: IntArray
) -> dict[str, float | None]:
    from scipy.spatial.distance import cdist  # slow to import, and rarely needed

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
    from scipy.spatial.distance import cdist

    order = np.argsort(labels, kind="stable")
    nonempty = np.flatnonzero(counts)
    firsts = (np.cumsum(counts) - counts)[nonempty]
    sorted_rows, total = X[order], 0.0
    for rows in iterate_slices(len(X), max(_PAIRS // len(X), 1)):
        own = labels[rows, None]
        sums = np.full((len(own), len(counts)), np.inf)
        sums[:, nonempty] = np.add.reduceat(cdist(X[rows], sorted_rows), firsts, axis=1)
        a = np.take_along_axis(sums, own, axis=1) / np.maximum(counts[own] - 1, 1)
        means = sums / np.maximum(counts, 1)
        np.put_along_axis(means, own, np.inf, axis=1)
        b = means.min(axis=1, keepdims=True)
        larger, scores = np.maximum(a, b), np.zeros_like(a)
        is_defined = (counts[own] > 1) & (larger > 0)
        np.divide(b - a, larger, out=scores, where=is_defined)
        total += float(scores.sum())
    return formulas.mean_silhouette(total, len(X))
