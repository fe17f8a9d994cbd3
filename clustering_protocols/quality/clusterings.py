"""Figures of what k-means found."""

from __future__ import annotations

from clustering_protocols.algorithms.kmeans import Clustering
from clustering_protocols.numerics import row_blocks
from clustering_protocols.numerics.blocks import ONE_THREAD, Engine
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.numerics.row_blocks import RowBlocks
from clustering_protocols.records.arrays import FloatArray

from . import around_means, sums as formulas


def of_clustering(
    X: FloatArray | RowBlocks, found: Clustering, engine: Engine = ONE_THREAD
) -> Figures:
    """Return the figures of a clustering on rows X (n, F), those of an embedding too.

    Computed on X, where what was clustered may be an embedding of it.
    """
    sums = around_means.of(row_blocks.of(X), found.labels, engine)
    return formulas.of_sums(sums, n_iter=found.n_iter, converged=found.converged)
