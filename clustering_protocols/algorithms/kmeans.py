"""k-means from explicit initial centroids.

The initial centroids are rows, given by their indices, so that a clustering of pooled
data can start from the same rows. Lloyd's iteration (:mod:`.lloyd`) agrees with
scikit-learn's up to rounding, and its result has the same bits on any number of
processors.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

import numpy as np

from clustering_protocols.common.limits import fits_in_one_array
from clustering_protocols.numerics import row_blocks
from clustering_protocols.numerics.blocks import ONE_THREAD, Engine
from clustering_protocols.numerics.row_blocks import RowBlocks
from clustering_protocols.records.arrays import FloatArray, IntArray

from . import oversampling
from .lloyd import ScaledRows, lloyd

MOST_TRIALS: Final = 32
"""The default number of candidate rows per centre in k-means++ is never larger."""
RACE_ROWS: Final = 1 << 15
"""Size of the sample on which all starts run first; only the best continues on all rows."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clustering:
    """The best of several k-means runs.

    labels: int64 (n,); the cluster of each row.
    centroids: float64 (n_clusters, width).
    inertia: the sum of squared distances of the rows to their nearest centroids.
    starts: int64 (n_init, n_clusters); the indices of the initial centroids' rows.
    n_iter: the number of iterations of the best run.
    converged: whether the best run ended because no label changed.
    """

    labels: IntArray = field(repr=False)
    centroids: FloatArray = field(repr=False)
    inertia: float
    starts: IntArray = field(repr=False)
    n_iter: int
    converged: bool


def draw_starts(
    X: FloatArray | RowBlocks,
    n_clusters: int,
    n_init: int,
    rng: np.random.Generator,
    engine: Engine = ONE_THREAD,
    *,
    trials: int | None = None,
) -> IntArray:
    """Draw initial centroids (n_init, n_clusters), as row indices, by k-means++.

    D. Arthur and S. Vassilvitskii, "k-means++: the advantages of careful seeding",
    2007. For each centre, k-means++ draws some rows in a pass over all rows and keeps
    the one that leaves the smallest sum of squared distances. If the rows do not fit
    into one array, k-means‖ (:mod:`.oversampling`) makes fewer passes.

    trials: the number of rows drawn for each centre; by default the number of clusters,
        but at most 32. scikit-learn draws only 2 + ln k rows, and so needs more starts
        if k is large.
    """
    blocks = row_blocks.as_row_blocks(X)
    n_trials = min(n_clusters, MOST_TRIALS) if trials is None else trials
    if not fits_in_one_array(*blocks.shape):
        rows = ScaledRows.scale(blocks, engine, n_clusters)
        return oversampling.draw_starts(rows, n_clusters, n_init, rng, n_trials)
    from sklearn.cluster import kmeans_plusplus  # parties never need it

    X = blocks.load()
    seeds = rng.integers(2**31, size=n_init)
    draws = [
        kmeans_plusplus(X, n_clusters, random_state=int(seed), n_local_trials=n_trials)
        for seed in seeds
    ]
    return np.array([numbers for _, numbers in draws], dtype=np.int64)


def kmeans(
    X: FloatArray | RowBlocks,
    starts: IntArray,
    max_iter: int,
    engine: Engine = ONE_THREAD,
) -> Clustering:
    """Run Lloyd's iteration from each row of ``starts``; return the best run.

    If there are at least ``2 * RACE_ROWS`` rows, all starts first run on ``RACE_ROWS``
    evenly spaced rows, and only the best one continues with all rows.

    A run ends when no label changes, or after ``max_iter`` iterations. There is no
    tolerance, because it would let runs on differently scaled copies of the data stop
    at different iterations. The result has the same bits with any engine, and whether X
    is an array or blocks. Only a few blocks, the labels and the sample of rows are held
    in memory.

    X: float64 (n, width), or RowBlocks; no value may exceed 1e100.
    starts: int64 (n_init, n_clusters); the indices of the initial centroids in X.
    engine: processes blocks of rows; its threads are not used for small data.

    Raises ValueError if a row holds NaN or an infinite number.
    """
    rows = ScaledRows.scale(row_blocks.as_row_blocks(X), engine, starts.shape[1])
    centroids = [rows.take(start) for start in starts]
    if len(starts) > 1 and rows.n_rows >= 2 * RACE_ROWS:
        centroids = [_choose_start_on_sample(rows, centroids, max_iter)]
    runs = [lloyd(rows, V, max_iter) for V in centroids]
    limit = min(run.inertia for run in runs) + rows.n_rows * Fraction(rows.units.tie)
    best = next(run for run in runs if run.inertia <= limit)  # the first of equal runs
    labels = np.empty(rows.n_rows, dtype=np.int64)
    for block, assignment in rows.iter_nearest(best.V):
        labels[block] = assignment.labels
    return Clustering(
        labels=labels,
        centroids=best.V + rows.units.offset,
        inertia=float(best.inertia),
        starts=starts,
        n_iter=best.n_iter,
        converged=best.converged,
    )


def _choose_start_on_sample(
    rows: ScaledRows, centroids: list[FloatArray], max_iter: int
) -> FloatArray:
    numbers = np.linspace(0, rows.n_rows - 1, RACE_ROWS).astype(np.int64)
    sample = ScaledRows.scale(
        row_blocks.as_row_blocks(rows.source.take(numbers)), ONE_THREAD, 1
    )
    shift = rows.units.offset - sample.units.offset
    runs = [lloyd(sample, V + shift, max_iter) for V in centroids]
    return min(runs, key=lambda run: run.inertia).V - shift


def nearest_centroids(X: FloatArray, centroids: FloatArray) -> IntArray:
    """Return the number (n,) of the centroid nearest to each row of X (n, width).

    If several centroids are exactly equally near, the lowest number is returned.
    """
    from sklearn.metrics import pairwise_distances_argmin  # parties rarely need it

    labels: IntArray = pairwise_distances_argmin(X, centroids).astype(np.int64)
    return labels
