"""k-means from given starts.

Starts are row numbers, so that a clustering of pooled data can start from the same rows.
Lloyd's iteration (:mod:`.lloyd`) equals scikit-learn's except for rounding, and gives the
same bits on any number of processors.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

import numpy as np

from clustering_protocols.common.limits import fit_in_one_array
from clustering_protocols.numerics import row_blocks
from clustering_protocols.numerics.blocks import ONE_THREAD, Engine
from clustering_protocols.numerics.row_blocks import RowBlocks
from clustering_protocols.records.arrays import FloatArray, IntArray

from . import oversampling
from .lloyd import ScaledRows, lloyd

MOST_TRIALS: Final = 32
"""Largest default number of rows that k-means++ tries for each centre."""
RACE_ROWS: Final = 1 << 15
"""Rows of the sample on which starts compete; only the best one continues on all rows."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Clustering:
    """The best of several runs.

    labels: int64 (n,).
    centroids: float64 (n_clusters, width).
    inertia: sum of squared distances to the nearest centroid.
    starts: int64 (n_init, n_clusters); row numbers.
    n_iter: iterations of the best run.
    converged: whether it ended because no label changed.
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
    """Return row numbers (n_init, n_clusters), drawn by k-means++ or k-means‖.

    D. Arthur and S. Vassilvitskii, "k-means++: the advantages of careful seeding",
    2007. For each centre, k-means++ passes over the rows, draws some, and keeps the row
    that leaves the smallest sum of squared distances. With many rows, k-means‖
    (:mod:`.oversampling`) makes few passes for any number of clusters.

    trials: rows drawn for each centre; by default as many as clusters, at most 32.
        scikit-learn draws 2 + ln k, which needs more starts for many clusters.
    """
    blocks = row_blocks.of(X)
    n_trials = min(n_clusters, MOST_TRIALS) if trials is None else trials
    if not fit_in_one_array(*blocks.shape):
        rows = ScaledRows.scale(blocks, engine, n_clusters)
        return oversampling.draw_starts(rows, n_clusters, n_init, rng, n_trials)
    from sklearn.cluster import kmeans_plusplus  # parties never need it

    X = row_blocks.whole(blocks)
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
    """Run Lloyd's iteration from each row of starts; return the run of least inertia.

    With at least twice ``RACE_ROWS`` rows, all starts run on that many evenly spaced
    rows, and only the best continues with all rows.

    Each run continues until no label changes (or ``max_iter``): with a tolerance, runs
    on differently scaled copies of the same data would stop at different iterations.
    Any engine gives the same bits, and so do an array and blocks. Memory holds a few
    blocks, the labels and the sample of rows.

    X: float64 (n, width), or RowBlocks; no value beyond 1e100: squares are added up.
    starts: int64 (n_init, n_clusters); row numbers of X.
    engine: works on blocks of rows; few rows are not worth its threads.

    Raises ValueError if a row holds NaN or an infinite number.
    """
    rows = ScaledRows.scale(row_blocks.of(X), engine, starts.shape[1])
    centroids = [rows.take(start) for start in starts]
    if len(starts) > 1 and rows.n_rows >= 2 * RACE_ROWS:
        centroids = [_choose_start_on_sample(rows, centroids, max_iter)]
    runs = [lloyd(rows, V, max_iter) for V in centroids]
    limit = min(run.inertia for run in runs) + rows.n_rows * Fraction(rows.units.tie)
    best = next(run for run in runs if run.inertia <= limit)  # the first of equals
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
    sample = ScaledRows.scale(row_blocks.of(rows.source.take(numbers)), ONE_THREAD, 1)
    shift = rows.units.offset - sample.units.offset
    runs = [lloyd(sample, V + shift, max_iter) for V in centroids]
    return min(runs, key=lambda run: run.inertia).V - shift


def nearest_centroids(X: FloatArray, centroids: FloatArray) -> IntArray:
    """Return for each row of X (n, width) the number of the nearest centroid (k, width).

    Exact ties go to the lowest number.
    """
    from sklearn.metrics import pairwise_distances_argmin  # parties rarely need it

    labels: IntArray = pairwise_distances_argmin(X, centroids).astype(np.int64)
    return labels
