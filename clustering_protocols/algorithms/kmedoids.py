"""k-medoids on condensed distances: FasterPAM.

E. Schubert and P. J. Rousseeuw, "Fast and eager k-medoids clustering", Information
Systems 101, 2021: a candidate is swapped in as soon as some medoid's place gives a
smaller sum of distances; one scan over a candidate's row finds the best of all k places.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from clustering_protocols.algorithms.condensed_distances import n_rows, read_row
from clustering_protocols.numerics.compilation import compile_kernel
from clustering_protocols.records.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Medoids:
    """The best of several runs.

    labels: int64 (n,); place of the nearest medoid in ``medoids``; equal distances go
        to the lower.
    medoids: int64 (n_clusters,); row numbers.
    loss: sum of distances to the nearest medoid.
    """

    labels: IntArray = field(repr=False)
    medoids: IntArray = field(repr=False)
    loss: float


def draw_medoids(
    n: int, n_clusters: int, n_init: int, rng: np.random.Generator
) -> IntArray:
    """Return different row numbers (n_init, n_clusters), uniformly."""
    drawn = [rng.choice(n, n_clusters, replace=False) for _ in range(n_init)]
    return np.array(drawn, dtype=np.int64)


def kmedoids(condensed: FloatArray, starts: IntArray, max_iter: int) -> Medoids:
    """Improve each row of starts until no swap helps; return the run of least loss.

    condensed: float64 (n (n - 1) / 2,); distances.
    starts: int64 (n_init, n_clusters); row numbers.
    max_iter: most passes over all candidates.
    """
    return min(
        (_run(condensed, start, max_iter) for start in starts), key=lambda run: run.loss
    )


def _run(condensed: FloatArray, start: IntArray, max_iter: int) -> Medoids:
    n = n_rows(condensed)
    medoids = start.copy()
    rows = np.empty((len(medoids), n))
    for place, medoid in enumerate(medoids):
        read_row(condensed, n, medoid, rows[place])
    _improve(condensed, medoids, rows, max_iter)
    return Medoids(
        labels=rows.argmin(axis=0).astype(np.int64),
        medoids=medoids,
        loss=float(rows.min(axis=0).sum()),
    )


@compile_kernel
def _two_nearest(
    rows: FloatArray, far: float, first: IntArray, near: FloatArray, second: FloatArray
) -> FloatArray:
    """Fill the nearest medoid's place and the two least distances of each row.

    Return what the removal of each medoid would add to the loss. ``far``, beyond all
    distances, stands for the second medoid where there is one alone.
    """
    k, n = rows.shape
    removal = np.zeros(k)
    for o in range(n):
        first[o], near[o], second[o] = 0, far, far
        for place in range(k):
            value = rows[place, o]
            if value < near[o]:
                second[o] = near[o]
                first[o], near[o] = place, value
            elif value < second[o]:
                second[o] = value
        removal[first[o]] += second[o] - near[o]
    return removal


@compile_kernel
def _gains(
    row: FloatArray,
    removal: FloatArray,
    first: IntArray,
    near: FloatArray,
    second: FloatArray,
) -> FloatArray:
    """Return the change of the loss if a candidate takes each medoid's place."""
    change = removal.copy()
    shared = 0.0
    for o in range(len(row)):
        value = row[o]
        if value < near[o]:
            shared += value - near[o]
            change[first[o]] += near[o] - second[o]
        elif value < second[o]:
            change[first[o]] += value - second[o]
    return change + shared


@compile_kernel
def _improve(
    condensed: FloatArray, medoids: IntArray, rows: FloatArray, max_iter: int
) -> None:
    n = rows.shape[1]
    first, near, second = np.empty(n, np.int64), np.empty(n), np.empty(n)
    row = np.empty(n)
    far = 2.0 * condensed.max() + 1.0
    removal = _two_nearest(rows, far, first, near, second)
    unchanged = 0
    for step in range(max_iter * n):
        candidate = step % n
        if unchanged == n:
            return
        unchanged += 1
        if (medoids == candidate).any():
            continue
        read_row(condensed, n, candidate, row)
        change = _gains(row, removal, first, near, second)
        place = int(change.argmin())
        if change[place] < -1e-12 * near.sum():  # rounding is no gain
            medoids[place] = candidate
            for i in range(n):  # a slice would make the compiler take twice as long
                rows[place, i] = row[i]
            removal = _two_nearest(rows, far, first, near, second)
            unchanged = 0
