"""Where the centroids start: V(0), in scaled units.

No start holds a row: where one is drawn from rows of a party, each centroid is the mean
of a random row and its nearest neighbours (Corcuera Bárcena et al., section VI-D).
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Final

import numpy as np

from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.data import DataSource
from clustering_protocols.errors import InvalidData
from clustering_protocols.preparation.alignment.digests import RowOrder
from clustering_protocols.preparation.secrets import Scope, group_stream
from clustering_protocols.randomness import KeyedStream

from .features import Scaler
from .params import LlfContext, LlfSession

if TYPE_CHECKING:
    from sklearn.cluster import KMeans

N_NEIGHBOURS: Final = 5
_SAMPLE_ROWS: Final = 20_000
_N_INIT: Final = 10


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


def careful_candidates(X: FloatArray, k: int, stream: KeyedStream) -> FloatArray:
    """Return k candidates (k, m): k-means++ with each row replaced by a mean.

    Parameters
    ----------
    X : float64 array of shape (n, m), scaled rows
    """
    candidates = np.empty((k, X.shape[1]))
    nearest = np.ones(len(X))  # the first draw is uniform
    for c in range(k):
        cumulative = np.cumsum(nearest)
        at = float(stream.uniform(1)[0]) * cumulative[-1]
        row = min(int(np.searchsorted(cumulative, at)), len(X) - 1)
        candidates[c] = mean_of_neighbours(X, row)
        to_new = np.square(X - candidates[c]).sum(axis=1)
        nearest = to_new if c == 0 else np.minimum(nearest, to_new)
        if not nearest.any():
            nearest = np.ones(len(X))  # all rows coincide with candidates
    return candidates


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


def merge(candidates: FloatArray, k: int, stream: KeyedStream) -> FloatArray:
    """Return the k-means centroids (k, m) of all parties' candidates."""
    # not above: reading scikit-learn takes a party seconds, and most starts need none
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    from clustering_protocols.algorithms.kmeans import draw_starts

    seed = int.from_bytes(stream.take(8), "big")
    starts = draw_starts(candidates, k, _N_INIT, np.random.default_rng(seed))
    # of few candidates; recorded sessions have the last bits of scikit-learn's
    with threadpool_limits(1, "openmp"), warnings.catch_warnings():
        # rows that coincide give fewer different candidates
        warnings.simplefilter("ignore", ConvergenceWarning)
        runs = [_lloyd(candidates, candidates[rows]) for rows in starts]
    merged: FloatArray = min(runs, key=lambda run: run.inertia_).cluster_centers_
    return merged


def _lloyd(candidates: FloatArray, V: FloatArray) -> KMeans:
    from sklearn.cluster import KMeans

    return KMeans(len(V), init=V, n_init=1, max_iter=300, tol=0.0).fit(candidates)


def of_lane(purpose: str, lane: int) -> str:
    """Return what one of several starts is drawn for; the first as if it were alone."""
    return f"{purpose}/{lane}" if lane else purpose


def without_messages(context: LlfContext, scale: Scaler, lane: int = 0) -> FloatArray:
    """Return a start that every party of the session finds for itself."""
    params = context.session.params
    if params.init == "given":
        return scale(given(context.session, context.slot.column))
    # one stream per column group: the parties of a row group hold different columns
    scope: Scope = "column" if context.session.layout.n_column_groups == 1 else "row"
    purpose = of_lane(f"start/{context.slot.column}", lane)
    stream = group_stream(context, scope, purpose)
    drawn = stream.uniform(params.n_clusters, scale.offset.size)
    low, high = scale.ranges
    V = scale(low + (high - low) * drawn)
    return np.clip(V, -scale.limit, scale.limit)  # wide ranges, rows near to each other


def given(session: LlfSession, column: int) -> FloatArray:
    """Return the columns (k, m) of the given centroids that a column group holds."""
    widths = [
        session.member(session.layout.column_group(other)[0]).n_columns
        for other in range(session.layout.n_column_groups)
    ]
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
