"""Where the centroids start: V(0), in scaled units.

No start holds a row. Start `careful` merges the centroids of every party's own k-means,
weighted by their sizes (Dennis, Li and Smith, "Heterogeneity for the win: one-shot
federated clustering", 2021, merge such centroids too). In start `random_party` each
centroid is the mean of a random row and its nearest neighbours (Corcuera Bárcena et al.,
section VI-D).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from clustering_protocols.common.errors import InvalidData
from clustering_protocols.numerics.blocks import ONE_THREAD
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.numerics.row_blocks import ArrayRows
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.shared_stages.alignment.digests import RowOrder
from clustering_protocols.shared_stages.secrets import Scope, group_stream

from .closing_sums import steps_of
from .features import Scaler
from .params import LEAST_OWN_ROWS, LlfContext, LlfSession

N_NEIGHBOURS: Final = 5
_SAMPLE_ROWS: Final = 20_000
_N_INIT: Final = 10
_N_INIT_LOCAL: Final = 5
_MAX_ITER: Final = 300


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

    centroids: float64 (k, m), in scaled units; 0 where there is no cluster.
    sizes: int64 (k,); rows of each cluster, down to a multiple of five, so 0 where fewer
        than five rows would be described.
    """

    centroids: FloatArray = field(repr=False)
    sizes: IntArray = field(repr=False)


def local_centroids(X: FloatArray, k: int, stream: KeyedStream) -> LocalCentroids:
    """Return the k-means centroids of a party's own rows, from the best of five starts.

    Centroids are rounded as published ones are: what two sessions over nearly the same
    rows differ by says little of a row.

    X: float64 (n, m), scaled rows.
    """
    # not above: an analyst draws no start, and compiled passes take it a second
    from clustering_protocols.algorithms.lloyd import ScaledRows, lloyd

    rows = ScaledRows.of(ArrayRows(X), ONE_THREAD, k)
    n_clusters = max(1, min(k, len(X) // LEAST_OWN_ROWS))
    drawn = [draw_rows(X, n_clusters, stream) for _ in range(_N_INIT_LOCAL)]
    runs = [lloyd(rows, rows.at(numbers), _MAX_ITER) for numbers in drawn]
    best = min(runs, key=lambda run: run.inertia)
    ((_, found),) = rows.nearest(best.V)
    centroids = np.zeros((k, X.shape[1]))
    sizes = np.zeros(k, dtype=np.int64)
    for cluster in range(n_clusters):
        members = X[found.labels == cluster]
        if len(members) >= LEAST_OWN_ROWS:
            centroids[cluster] = round_mean(members)
            sizes[cluster] = len(members) // LEAST_OWN_ROWS * LEAST_OWN_ROWS
    return LocalCentroids(centroids=centroids, sizes=sizes)


def draw_rows(X: FloatArray, k: int, stream: KeyedStream) -> IntArray:
    """Return the numbers (k,) of rows that k-means++ draws.

    D. Arthur and S. Vassilvitskii, "k-means++: the advantages of careful seeding", 2007.
    """
    numbers = np.empty(k, dtype=np.int64)
    nearest = np.ones(len(X))  # the first draw is uniform
    for c in range(k):
        cumulative = np.cumsum(nearest)
        at = float(stream.uniform(1)[0]) * cumulative[-1]
        numbers[c] = min(int(np.searchsorted(cumulative, at)), len(X) - 1)
        to_new = np.square(X - X[numbers[c]]).sum(axis=1)
        nearest = to_new if c == 0 else np.minimum(nearest, to_new)
        if not nearest.any():
            nearest = np.ones(len(X))  # every row coincides with a drawn one
    return numbers


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
    # not above: reading scikit-learn takes a party seconds, and most starts need none
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    given = weights > 0
    if not given.any():
        raise InvalidData(
            f"No party has a cluster of {LEAST_OWN_ROWS} rows to start from: take fewer "
            "clusters."
        )
    centroids, weights = centroids[given], weights[given]
    if len(centroids) < k:  # what coincides is moved apart by the updates
        return np.resize(centroids, (k, centroids.shape[1]))
    seed = int.from_bytes(stream.take(4), "big") % 2**31
    model = KMeans(k, n_init=_N_INIT, random_state=seed)
    with threadpool_limits(1, "openmp"), warnings.catch_warnings():
        # rows that coincide give fewer different centroids
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(centroids, sample_weight=weights)
    merged: FloatArray = model.cluster_centers_
    return merged


def of_lane(purpose: str, lane: int) -> str:
    """Return what one of several starts is drawn for; the first as if it were alone."""
    return f"{purpose}/{lane}" if lane else purpose


def without_messages(context: LlfContext, scale: Scaler, lane: int = 0) -> FloatArray:
    """Return a start that every party of the session finds for itself."""
    params = context.session.params
    if params.init == "given":
        return scale(select_initial_centroids(context.session, context.slot.column))
    # one stream per column group: the parties of a row group hold different columns
    scope: Scope = "column" if context.session.layout.n_column_groups == 1 else "row"
    purpose = of_lane(f"start/{context.slot.column}", lane)
    stream = group_stream(context, scope, purpose)
    drawn = stream.uniform(params.n_clusters, scale.offset.size)
    low, high = scale.ranges
    V = scale(low + (high - low) * drawn)
    return np.clip(V, -scale.limit, scale.limit)  # wide ranges, rows near to each other


def select_initial_centroids(session: LlfSession, column: int) -> FloatArray:
    """Return the columns (k, m) of the given centroids that a column group holds."""
    widths = session.column_widths
    begin = sum(widths[:column])
    rows = np.array(session.params.initial_centroids, dtype=np.float64)
    return rows[:, begin : begin + widths[column]]


def random_rows(context: LlfContext, data: DataSource, scale: Scaler) -> FloatArray:
    """Return this party's columns of k joint rows that the row group agrees on."""
    k = context.session.params.n_clusters
    check_enough_rows(data, k)
    order = context.recall(RowOrder).order
    places = group_stream(context, "row", "start").permutation(data.n_rows)[:k]
    return scale(take(data, order[places]))


def check_enough_rows(data: DataSource, k: int) -> None:
    """Refuse fewer rows than clusters."""
    if data.n_rows < k:
        raise InvalidData(f"{data.n_rows} rows cannot start {k} clusters.")
