"""Quality figures from two passes over rows: first the means, then sums around them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from clustering_protocols.algorithms.kmeans import Clustering
from clustering_protocols.numerics import row_blocks
from clustering_protocols.numerics.blocks import ONE_THREAD, Engine
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.numerics.row_blocks import RowBlock, RowBlocks
from clustering_protocols.records.arrays import FloatArray, IntArray

from . import block_sums, sums as formulas

Labelled = tuple[RowBlock, IntArray]


def figures_of_clustering(
    X: FloatArray | RowBlocks, clustering: Clustering, engine: Engine = ONE_THREAD
) -> Figures:
    """Compute the quality figures of a clustering of rows X (n, F).

    They are computed from X even if an embedding of X was clustered.
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
