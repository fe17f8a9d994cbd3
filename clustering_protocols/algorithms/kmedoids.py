"""The k-medoids algorithm FasterPAM on condensed distances.

E. Schubert and P. J. Rousseeuw, "Fast and eager k-medoids clustering", Information
Systems 101, 2021. A candidate replaces a medoid as soon as this reduces the sum of
distances. One scan of the candidate's distances finds the best medoid to replace.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from clustering_protocols.algorithms.condensed_distances import count_rows, read_row
from clustering_protocols.numerics.kernels import add_in_order, in_c
from clustering_protocols.records.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Medoids:
    """The best of several k-medoids runs.

    labels: int64 (n,); the position in ``medoids`` of each row's nearest medoid.
    medoids: int64 (n_clusters,); the row indices of the medoids.
    loss: the sum of the rows' distances to their nearest medoids.
    """

    labels: IntArray = field(repr=False)
    medoids: IntArray = field(repr=False)
    loss: float


def draw_medoids(
    n: int, n_clusters: int, n_init: int, rng: np.random.Generator
) -> IntArray:
    """Draw ``n_init`` sets of initial medoids uniformly, without repeats within a set."""
    starts = [rng.choice(n, n_clusters, replace=False) for _ in range(n_init)]
    return np.array(starts, dtype=np.int64)


def kmedoids(condensed: FloatArray, starts: IntArray, max_iter: int) -> Medoids:
    """Improve each set of initial medoids by swaps; return the run with the lowest loss.

    condensed: float64 (n (n - 1) / 2,); the distances in condensed form.
    starts: int64 (n_init, n_clusters); the row indices of the initial medoids.
    max_iter: the maximum number of passes over all candidates.
    """
    return min(
        (_run_from_start(condensed, start, max_iter) for start in starts),
        key=lambda run: run.loss,
    )


def _run_from_start(condensed: FloatArray, start: IntArray, max_iter: int) -> Medoids:
    n = count_rows(condensed)
    medoids = start.copy()
    rows = np.empty((len(medoids), n))
    for index, medoid in enumerate(medoids):
        read_row(condensed, n, medoid, rows[index])
    _improve(condensed, medoids, rows, max_iter)
    return Medoids(
        labels=rows.argmin(axis=0).astype(np.int64),
        medoids=medoids,
        loss=float(rows.min(axis=0).sum()),
    )


@in_c("medoids", "rows")
def _improve(
    condensed: FloatArray, medoids: IntArray, rows: FloatArray, max_iter: int
) -> None:
    n = rows.shape[1]
    row = np.empty(n)
    far = 2.0 * condensed.max(initial=0.0) + 1.0  # if there is no second medoid
    first, near, second, removal = _two_nearest_medoids(rows, far)
    unchanged = 0
    for step in range(max_iter * n):
        candidate = step % n
        if unchanged == n:
            return
        unchanged += 1
        if candidate in medoids:
            continue
        read_row(condensed, n, candidate, row)
        nearer, touched = row < near, row < second
        apart = np.where(nearer, near - second, row - second)
        change = removal.copy()  # change of the loss if a medoid is replaced
        np.add.at(change, first[touched], apart[touched])
        change += add_in_order(0.0, (row - near)[nearer])
        index = int(change.argmin())
        if change[index] < -1e-12 * add_in_order(0.0, near):  # more than rounding
            medoids[index] = candidate
            rows[index] = row
            first, near, second, removal = _two_nearest_medoids(rows, far)
            unchanged = 0


def _two_nearest_medoids(
    rows: FloatArray, far: float
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Return each row's nearest medoid and its two smallest distances to medoids (n,).

    The last array (k,) says for each medoid how much the loss would grow without it.
    """
    first = rows.argmin(axis=0)
    near, second = np.sort(np.vstack([rows, np.full(rows.shape[1], far)]), axis=0)[:2]
    removal = np.bincount(first, second - near, len(rows))
    return first, near, second, removal.astype(np.float64)
