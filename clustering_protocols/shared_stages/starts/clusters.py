"""Where centroids can start: means over five rows or more, of a party's own clusters.

Start `careful` merges the centroids of every party's own k-means, weighted by their sizes
(Dennis, Li and Smith, "Heterogeneity for the win: one-shot federated clustering", 2021,
merge such centroids too). In start `random_party` each centroid is the mean of a random
row and its nearest neighbours (Corcuera Bárcena et al., section VI-D).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from clustering_protocols.algorithms.row_kernels import squared_distances
from clustering_protocols.common.errors import InvalidData
from clustering_protocols.common.limits import LEAST_OWN_ROWS
from clustering_protocols.numerics.blocks import ONE_THREAD
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.numerics.round_numbers import steps_of
from clustering_protocols.numerics.row_blocks import ArrayRows
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.shared_stages.scaling import Scaler

N_NEIGHBOURS: Final = 5
_SAMPLE_ROWS: Final = 20_000
DESCRIBED: Final = 2
"""How many clusters of its own a party describes for each that is asked for.

As many as asked for are too few where sizes differ much: a party's own best ones split
the largest cluster, and no centroid is left for the smallest.
"""
_ROWS_OF_EACH: Final = 15
"""A party with fewer rows for each describes as many as are asked for."""
_N_INIT: Final = 50
_N_INIT_LOCAL: Final = (5, 20)
"""Fewest and most; between them what a million rows times clusters allow."""
_MAX_ITER: Final = 300
_MAX_FILLED: Final = 10


def sample(data: DataSource, scale: Scaler, stream: KeyedStream) -> FloatArray:
    """Return at most 20,000 rows (s, m), scaled, without holding the others."""
    chosen = np.sort(stream.permutation(data.n_rows)[:_SAMPLE_ROWS])
    return scale(take(data, chosen))


def take(data: DataSource, rows: IntArray) -> FloatArray:
    """Return some rows (s, m) by number, in one pass over the batches."""
    found = np.empty((len(rows), len(data.columns)))
    begin = 0
    for batch in data.batches():
        inside = (rows >= begin) & (rows < begin + len(batch))
        found[inside] = batch[rows[inside] - begin]
        begin += len(batch)
    return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalCentroids:
    """What a party says of its own clusters, so that others can start from them.

    centroids: float64 (c, m), in scaled units; 0 where there is no cluster. c is
        DESCRIBED times the number of clusters asked for, whatever the party has.
    sizes: int64 (c,); rows of each cluster to the nearest multiple of five; 0 where there
        is no cluster. None has fewer than five rows.
    """

    centroids: FloatArray = field(repr=False)
    sizes: IntArray = field(repr=False)


def local_centroids(X: FloatArray, k: int, stream: KeyedStream) -> LocalCentroids:
    """Return the k-means centroids of a party's own rows, from the best of several starts.

    No cluster has fewer than five rows: it takes the nearest of others. To leave it out
    instead would lose a small cluster whose rows k-means has parted. Centroids are
    rounded as published ones are: what two sessions over nearly the same rows differ by
    says little of a row.

    X: float64 (n, m), scaled rows; of fewer than five nothing is said.
    """
    # not above: an analyst draws no start
    from clustering_protocols.algorithms.lloyd import ScaledRows, lloyd

    wanted = DESCRIBED * k
    centroids = np.zeros((wanted, X.shape[1]))
    sizes = np.zeros(wanted, dtype=np.int64)
    if len(X) < LEAST_OWN_ROWS:
        return LocalCentroids(centroids=centroids, sizes=sizes)
    rows = ScaledRows.scale(ArrayRows(X), ONE_THREAD, wanted)
    n_clusters = wanted if len(X) >= _ROWS_OF_EACH * wanted else k
    n_clusters = min(n_clusters, len(X) // LEAST_OWN_ROWS)
    n_init = int(np.clip(10**6 // (len(X) * n_clusters), *_N_INIT_LOCAL))
    drawn = [draw_rows(X, n_clusters, stream) for _ in range(n_init)]
    runs = [lloyd(rows, rows.take(numbers), _MAX_ITER) for numbers in drawn]
    best = min(runs, key=lambda run: run.inertia)
    labels = fill_clusters(X, best.V + rows.units.offset)
    for cluster in range(n_clusters):
        members = X[labels == cluster]
        centroids[cluster] = round_mean(members)
        half = LEAST_OWN_ROWS // 2
        sizes[cluster] = (len(members) + half) // LEAST_OWN_ROWS * LEAST_OWN_ROWS
    return LocalCentroids(centroids=centroids, sizes=sizes)


def draw_rows(
    X: FloatArray, k: int, stream: KeyedStream, weights: FloatArray | float = 1.0
) -> IntArray:
    """Return the numbers (k,) of rows, of weights (n,), that greedy k-means++ draws.

    D. Arthur and S. Vassilvitskii, "k-means++: the advantages of careful seeding", 2007;
    of 2 + log k rows that are drawn for each place the one counts that leaves the rows
    nearest.
    """
    numbers = np.empty(k, dtype=np.int64)
    nearest = np.ones(len(X))  # the first draw is uniform
    for c in range(k):
        cumulative = np.cumsum(weights * nearest)
        at = stream.uniform(2 + int(np.log(k)) if c else 1) * cumulative[-1]
        drawn = np.minimum(np.searchsorted(cumulative, at), len(X) - 1)
        away = np.array([np.square(X - X[row]).sum(axis=1) for row in drawn])
        if c:
            away = np.minimum(away, nearest)
        best = int((weights * away).sum(axis=1).argmin())
        numbers[c], nearest = drawn[best], away[best]
        if not nearest.any():
            nearest = np.ones(len(X))  # every row coincides with a drawn one
    return numbers


def fill_clusters(X: FloatArray, V: FloatArray) -> IntArray:
    """Return labels (n,) by which each cluster has five rows or more, around V (k, m).

    A cluster with fewer takes those rows that come least farther from their centroid, of
    clusters that can spare them; then means and nearest rows are found again. n ≥ 5k.
    """
    labels = np.empty(0, dtype=np.int64)
    for _ in range(_MAX_FILLED):
        D = np.array([np.square(X - v).sum(axis=1) for v in V])
        nearest = D.argmin(axis=0)
        filled = _fill(D, nearest)
        if np.array_equal(filled, nearest) or np.array_equal(filled, labels):
            return filled
        labels = filled
        V = np.array([X[labels == cluster].mean(axis=0) for cluster in range(len(V))])
    return labels


def _fill(D: FloatArray, labels: IntArray) -> IntArray:
    """Return labels with spare rows of the least extra distance in clusters below five."""
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
    """Return the mean (m,) of rows (n, m), in steps of at least max(1/20, 5/n) spreads.

    Steps are round numbers: of others a mean would say what the size and the spreads are.
    """
    step = steps_of(np.array([len(members)]), members.std(axis=0))[0]
    mean = members.mean(axis=0)
    grid: FloatArray = np.rint(mean / np.where(step > 0, step, 1)) * step
    return np.where(step > 0, grid, mean)


def random_means(X: FloatArray, k: int, stream: KeyedStream) -> FloatArray:
    """Return the means (k, m) of random rows and their nearest neighbours."""
    rows = stream.permutation(len(X))[:k]
    return np.array([mean_of_neighbours(X, int(row)) for row in rows])


def mean_of_neighbours(X: FloatArray, row: int) -> FloatArray:
    """Return the mean (m,) of a row and its four nearest others."""
    distances = np.square(X - X[row]).sum(axis=1)
    size = min(N_NEIGHBOURS, len(X))
    near = np.argpartition(distances, size - 1)[:size]
    mean: FloatArray = X[np.sort(near)].mean(axis=0)
    return mean


def merge(
    centroids: FloatArray, weights: FloatArray, k: int, stream: KeyedStream
) -> FloatArray:
    """Return the k-means centroids (k, m) of all parties' own ones.

    centroids: float64 (c, m), in scaled units.
    weights: float64 (c,); rows of each; 0 where there is no cluster.

    Raises InvalidData if no party has a cluster of five rows.
    """
    given = weights > 0
    if not given.any():
        raise InvalidData(
            f"No party has a cluster of {LEAST_OWN_ROWS} rows to start from: take fewer "
            "clusters."
        )
    centroids, weights = centroids[given], weights[given]
    if len(centroids) < k:  # what coincides is moved apart by the updates
        return np.resize(centroids, (k, centroids.shape[1]))
    runs = [_weighted_means(centroids, weights, k, stream) for _ in range(_N_INIT)]
    return min(runs, key=lambda run: run[0])[1]


def _weighted_means(
    X: FloatArray, weights: FloatArray, k: int, stream: KeyedStream
) -> tuple[float, FloatArray]:
    """Return inertia and centroids (k, m) of Lloyd's iteration on few weighted points."""
    V = X[draw_rows(X, k, stream, weights)]
    for _ in range(_MAX_ITER):
        D = squared_distances(X, V)
        labels = D.argmin(axis=1)
        held, sums = np.bincount(labels, weights, k), np.zeros_like(V)
        np.add.at(sums, labels, weights[:, None] * X)
        moved = V.copy()
        moved[held > 0] = sums[held > 0] / held[held > 0, None]
        if np.array_equal(moved, V):
            break
        V = moved
    return float((weights * D.min(axis=1)).sum()), V


def check_enough_rows(data: DataSource, k: int) -> None:
    """Refuse fewer rows than clusters."""
    if data.n_rows < k:
        raise InvalidData(f"{data.n_rows} rows cannot start {k} clusters.")
