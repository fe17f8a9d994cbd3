"""Sums around the means of clusters, over blocks of rows: two passes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from clustering_protocols.algorithms.kmeans import Clustering
from clustering_protocols.numerics import row_blocks
from clustering_protocols.numerics.blocks import ONE_THREAD, Engine
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.numerics.row_blocks import RowBlock, RowBlocks, span
from clustering_protocols.records.arrays import FloatArray, IntArray

from . import block_sums, sums as formulas

Labelled = tuple[RowBlock, IntArray]


def of_clustering(
    X: FloatArray | RowBlocks, clustering: Clustering, engine: Engine = ONE_THREAD
) -> Figures:
    """Return the figures of a clustering on rows X (n, F).

    They are computed on X even if an embedding of X was clustered.
    """
    sums = of(row_blocks.of(X), clustering.labels, engine)
    return formulas.of_sums(
        sums, n_iter=clustering.n_iter, converged=clustering.converged
    )


def of(
    rows: RowBlocks, labels: IntArray, engine: Engine = ONE_THREAD
) -> formulas.ClusterSums:
    """Return the sums of rows around the means of their clusters.

    Blocks are added up in their order, so that every engine gives the same bits.

    labels: int64 (n,); cluster numbers, none below 0.
    """
    counts = np.bincount(labels)
    k = len(counts)
    total = np.zeros((k, rows.shape[1]))
    for added in engine.map(partial(_label_sums, k), _label_blocks(rows, labels)):
        total += added
    means = total / np.maximum(counts, 1)[:, None]
    squares, distances, silhouettes = np.zeros(k), np.zeros(k), 0.0
    kernel = partial(_sum_around_means, means, counts)
    for block in engine.map(kernel, _label_blocks(rows, labels)):
        squares += block.squares
        distances += block.distances
        silhouettes += block.silhouettes
    return formulas.ClusterSums(
        counts=counts,
        squares=squares,
        distances=distances,
        separations=formulas.separations(means),
        silhouettes=silhouettes,
    )


def _label_blocks(rows: RowBlocks, labels: IntArray) -> Iterator[Labelled]:
    # small integers, because labels may be sent to other processes
    narrow = np.min_scalar_type(int(labels.max()))
    for block in rows.blocks():
        yield block, labels[span(block)].astype(narrow)


def _label_sums(k: int, labelled: Labelled) -> FloatArray:
    block, labels = labelled
    X = block.load()
    sums = np.zeros((k, X.shape[1]))
    block_sums.add_by_label(X, *_identity(X), labels.astype(np.int64), sums)
    return sums


def _sum_around_means(
    means: FloatArray, counts: IntArray, labelled: Labelled
) -> block_sums.BlockSums:
    block, labels = labelled
    X = block.load()
    return block_sums.of_block(X, _identity(X), means, labels.astype(np.int64), counts)


def _identity(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    return np.zeros(X.shape[1]), np.ones(X.shape[1])
