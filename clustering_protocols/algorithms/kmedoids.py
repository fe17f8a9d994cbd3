"""k-medoids on condensed distances: FasterPAM.

E. Schubert and P. J. Rousseeuw, "Fast and eager k-medoids clustering", Information
Systems 101, 2021: a candidate replaces a medoid as soon as that makes the sum of distances
smaller; one scan over the candidate's distances finds the best of all k medoids to replace.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from clustering_protocols.algorithms.condensed_distances import count_rows, read_row
from clustering_protocols.numerics.kernels import add_in_order, in_c
from clustering_protocols.records.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Medoids:
    """The best of several runs.

    labels: int64 (n,); index of the nearest medoid in ``medoids``; ties go to the lowest.
    medoids: int64 (n_clusters,); row numbers.
    loss: sum of distances to the nearest medoid.
    """

    labels: IntArray = field(repr=False)
    medoids: IntArray = field(repr=False)
    loss: float


def draw_medoids(
    n: int, n_clusters: int, n_init: int, rng: np.random.Generator
) -> IntArray:
    """Return row numbers (n_init, n_clusters), drawn uniformly; each row has no repeats."""
    starts = [rng.choice(n, n_clusters, replace=False) for _ in range(n_init)]
    return np.array(starts, dtype=np.int64)


def kmedoids(condensed: FloatArray, starts: IntArray, max_iter: int) -> Medoids:
    """Improve each row of starts until no swap helps; return the run of least loss.

    condensed: float64 (n (n - 1) / 2,); distances.
    starts: int64 (n_init, n_clusters); row numbers.
    max_iter: maximum number of passes over all candidates.
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
    far = 2.0 * condensed.max(initial=0.0) + 1.0  # stands for a missing second medoid
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
        change = removal.copy()  # of the loss, if the candidate replaces each medoid
        np.add.at(change, first[touched], apart[touched])
        change += add_in_order(0.0, (row - near)[nearer])
        index = int(change.argmin())
        if change[index] < -1e-12 * add_in_order(0.0, near):  # rounding is no gain
            medoids[index] = candidate
            rows[index] = row
            first, near, second, removal = _two_nearest_medoids(rows, far)
            unchanged = 0


def _two_nearest_medoids(
    rows: FloatArray, far: float
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Return each row's nearest medoid, smallest and second smallest distance (n,).

    The last array (k,) is what the removal of each medoid would add to the loss.
    """
    first = rows.argmin(axis=0)
    near, second = np.sort(np.vstack([rows, np.full(rows.shape[1], far)]), axis=0)[:2]
    removal = np.bincount(first, second - near, len(rows))
    return first, near, second, removal.astype(np.float64)
