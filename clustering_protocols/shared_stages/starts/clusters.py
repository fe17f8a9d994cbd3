"""Initial centroids that are means of at least five rows of a party.

In the start `careful`, each party runs k-means on its own rows, and the leader merges
the centroids of all parties, weighted by cluster sizes (similar to Dennis, Li and
Smith, "Heterogeneity for the win: one-shot federated clustering", 2021). In the start
`random_party`, each centroid is the mean of a random row of the leader and its nearest
neighbours (Corcuera Bárcena et al., section VI-D).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clustering_protocols.algorithms.row_kernels import squared_distances
from clustering_protocols.common.errors import InvalidData
from clustering_protocols.common.limits import LEAST_OWN_ROWS
from clustering_protocols.numerics.blocks import ONE_THREAD
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.numerics.round_numbers import rounding_steps
from clustering_protocols.numerics.row_blocks import ArrayRows
from clustering_protocols.records.arrays import FloatArray, IntArray

from .messages import Candidates

SAMPLE_ROWS: Final = 20_000
"""The maximum number of a party's rows from which a start is computed."""
DESCRIBED: Final = 2
"""The number of local clusters that a party describes for each cluster of the session.

One would be too few if sizes differ much: k-means then splits a party's largest
cluster, and no centroid is left for the smallest.
"""
_ROWS_PER_CLUSTER: Final = 15
"""A party with fewer rows per local cluster describes one for each session cluster."""
_N_INIT: Final = 50
_N_INIT_LOCAL: Final = (5, 20)
"""Smallest and largest number of starts; in between it is 10^6 / (rows · clusters)."""
_MAX_ITER: Final = 300
_MAX_FILL_ROUNDS: Final = 10


def take_rows(data: DataSource, rows: IntArray) -> FloatArray:
    """Return the rows (s, m) with these numbers, in one pass over the batches."""
    X = np.empty((len(rows), len(data.columns)))
    begin = 0
    for batch in data.batches():
        inside = (rows >= begin) & (rows < begin + len(batch))
        X[inside] = batch[rows[inside] - begin]
        begin += len(batch)
    return X


def local_centroids(X: FloatArray, k: int, stream: KeyedStream) -> Candidates:
    """Return the centroids of the best of several k-means runs on a party's own rows.

    A cluster with fewer than five rows takes over the nearest rows of other clusters,
    because a small cluster that k-means has split would be lost if it were dropped.
    Centroids are rounded like published ones, so that a comparison of two sessions over
    nearly the same rows reveals little about a single row.

    The result always has ``DESCRIBED`` · k centroids. If k-means finds fewer clusters,
    the remaining centroids and sizes are 0.

    X: float64 (n, m), scaled rows; if there are fewer than five, all sizes are 0.
    """
    # Imported here because the analyst never needs it.
    from clustering_protocols.algorithms.lloyd import ScaledRows, lloyd

    n_described = DESCRIBED * k
    centroids = np.zeros((n_described, X.shape[1]))
    sizes = np.zeros(n_described, dtype=np.int64)
    if len(X) < LEAST_OWN_ROWS:
        return Candidates(centroids=centroids, sizes=sizes)
    rows = ScaledRows.scale(ArrayRows(X), ONE_THREAD, n_described)
    n_clusters = n_described if len(X) >= _ROWS_PER_CLUSTER * n_described else k
    n_clusters = min(n_clusters, len(X) // LEAST_OWN_ROWS)
    n_init = int(np.clip(10**6 // (len(X) * n_clusters), *_N_INIT_LOCAL))
    seeds = [draw_seed_rows(X, n_clusters, stream) for _ in range(n_init)]
    runs = [lloyd(rows, rows.take(numbers), _MAX_ITER) for numbers in seeds]
    best = min(runs, key=lambda run: run.inertia)
    labels = fill_clusters(X, best.V + rows.units.offset)
    for cluster in range(n_clusters):
        members = X[labels == cluster]
        centroids[cluster] = round_mean(members)
        half = LEAST_OWN_ROWS // 2
        sizes[cluster] = (len(members) + half) // LEAST_OWN_ROWS * LEAST_OWN_ROWS
    return Candidates(centroids=centroids, sizes=sizes)


def draw_seed_rows(
    X: FloatArray, k: int, stream: KeyedStream, weights: FloatArray | float = 1.0
) -> IntArray:
    """Draw k rows by greedy k-means++ and return their numbers (k,).

    For each centroid, 2 + log k candidates are drawn, and the one that leaves the
    smallest weighted sum of squared distances is chosen. See D. Arthur and S.
    Vassilvitskii, "k-means++: the advantages of careful seeding", 2007.
    """
    numbers = np.empty(k, dtype=np.int64)
    nearest = np.ones(len(X))  # the first draw is uniform
    for c in range(k):
        cumulative = np.cumsum(weights * nearest)
        levels = stream.uniform(2 + int(np.log(k)) if c else 1) * cumulative[-1]
        candidates = np.minimum(np.searchsorted(cumulative, levels), len(X) - 1)
        D = np.array([np.square(X - X[row]).sum(axis=1) for row in candidates])
        if c:
            D = np.minimum(D, nearest)
        best = int((weights * D).sum(axis=1).argmin())
        numbers[c], nearest = candidates[best], D[best]
        if not nearest.any():
            nearest = np.ones(len(X))  # all rows coincide with rows already drawn
    return numbers


def fill_clusters(X: FloatArray, V: FloatArray) -> IntArray:
    """Assign rows to centroids V (k, m) so that each cluster has at least five rows.

    A cluster with fewer rows takes rows from clusters that can spare them, beginning
    with the rows whose squared distance from their centroid increases least. Then means
    and labels are recomputed. X must have n ≥ 5k rows. Returns labels, int64 (n,).
    """
    labels = np.empty(0, dtype=np.int64)
    for _ in range(_MAX_FILL_ROUNDS):
        D = np.array([np.square(X - v).sum(axis=1) for v in V])
        nearest = D.argmin(axis=0)
        filled = _move_rows_to_small_clusters(D, nearest)
        if np.array_equal(filled, nearest) or np.array_equal(filled, labels):
            return filled
        labels = filled
        V = np.array([X[labels == cluster].mean(axis=0) for cluster in range(len(V))])
    return labels


def _move_rows_to_small_clusters(D: FloatArray, labels: IntArray) -> IntArray:
    """Return labels after each cluster with fewer than five rows has been filled up."""
    labels = labels.copy()
    counts = np.bincount(labels, minlength=len(D))
    for cluster in np.flatnonzero(counts < LEAST_OWN_ROWS):
        extra = D[cluster] - D[labels, np.arange(len(labels))]
        for row in np.argsort(extra, kind="stable"):
            if counts[cluster] >= LEAST_OWN_ROWS:
                break
            if labels[row] != cluster and counts[labels[row]] > LEAST_OWN_ROWS:
                counts[labels[row]] -= 1
                counts[cluster] += 1
                labels[row] = cluster
    return labels


def round_mean(members: FloatArray) -> FloatArray:
    """Return the mean (m,) of rows (n, m), rounded to max(1/20, 5/n) deviations or more.

    Each step is a round number, because any other step would reveal n and the
    deviations.
    """
    step = rounding_steps(np.array([len(members)]), members.std(axis=0))[0]
    mean = members.mean(axis=0)
    grid: FloatArray = np.rint(mean / np.where(step > 0, step, 1)) * step
    return np.where(step > 0, grid, mean)


def draw_random_centroids(X: FloatArray, k: int, stream: KeyedStream) -> FloatArray:
    """Return k centroids (k, m): means of a random row and its four nearest neighbours.

    Raises InvalidData if X (n, m) has fewer than five rows.
    """
    size = LEAST_OWN_ROWS
    if len(X) < size:
        raise InvalidData(
            f"{len(X)} rows cannot start clusters, because each start is a mean of {size}."
        )
    means = np.empty((k, X.shape[1]))
    for c, row in enumerate(stream.permutation(len(X))[:k]):
        distances = np.square(X - X[row]).sum(axis=1)
        near = np.argpartition(distances, size - 1)[:size]
        means[c] = X[np.sort(near)].mean(axis=0)
    return means


def merge_centroids(
    centroids: FloatArray, weights: FloatArray, k: int, stream: KeyedStream
) -> FloatArray:
    """Cluster the parties' centroids by weighted k-means and return k centroids (k, m).

    centroids: float64 (c, m), in scaled units.
    weights: float64 (c,); the number of rows of each cluster, 0 if there is none.

    Raises InvalidData if no party has a cluster of five rows.
    """
    occupied = weights > 0
    if not occupied.any():
        raise InvalidData(
            f"No party has a cluster of {LEAST_OWN_ROWS} rows to start from: choose fewer "
            "clusters."
        )
    centroids, weights = centroids[occupied], weights[occupied]
    if len(centroids) < k:  # c-means separates them later, degrees keep them together
        return np.resize(centroids, (k, centroids.shape[1]))
    runs = [_weighted_means(centroids, weights, k, stream) for _ in range(_N_INIT)]
    return min(runs, key=lambda run: run[0])[1]


def _weighted_means(
    X: FloatArray, weights: FloatArray, k: int, stream: KeyedStream
) -> tuple[float, FloatArray]:
    """Return the inertia and the centroids (k, m) of weighted k-means on a few points."""
    V = X[draw_seed_rows(X, k, stream, weights)]
    for _ in range(_MAX_ITER):
        D = squared_distances(X, V)
        labels = D.argmin(axis=1)
        totals, sums = np.bincount(labels, weights, k), np.zeros_like(V)
        np.add.at(sums, labels, weights[:, None] * X)
        moved = V.copy()
        moved[totals > 0] = sums[totals > 0] / totals[totals > 0, None]
        if np.array_equal(moved, V):
            break
        V = moved
    return float((weights * D.min(axis=1)).sum()), V


def check_enough_rows(data: DataSource, k: int) -> None:
    """Raise InvalidData if there are fewer rows than clusters."""
    if data.n_rows < k:
        raise InvalidData(f"{data.n_rows} rows cannot start {k} clusters.")
