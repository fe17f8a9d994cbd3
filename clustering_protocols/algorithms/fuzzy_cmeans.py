"""Fuzzy c-means from explicit initial centroids, which a run on pooled data can reuse.

J. C. Bezdek, "Pattern recognition with fuzzy objective function algorithms", 1981. Each
iteration makes one pass over the rows. Memberships are stored only after the last
iteration.

In many dimensions several centroids may converge to the same point, and with the
exponent m = 2 usually all centroids do. This is a limitation of fuzzy c-means; a
smaller m helps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from clustering_protocols.algorithms.coincidence import (
    count_coinciding_clusters,
    strongest_clusters,
)
from clustering_protocols.numerics.kernels import add_in_order, in_c, power
from clustering_protocols.records.arrays import FloatArray, IntArray

TOLERANCE: Final = 1e-9  # centroids that move less, relative to the spread, are at rest
TIE: Final = 1e-4  # relative difference: a run ends before centroids meet exactly
ALIKE: Final = 1e-6  # runs whose objectives differ by less found the same optimum


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FuzzyClustering:
    """The best of several fuzzy c-means runs.

    memberships: float64 (n, n_clusters); each row adds up to 1.
    centroids: float64 (n_clusters, width).
    objective: Σ u_ij^m ‖x_i - v_j‖², which the best run minimises.
    """

    memberships: FloatArray = field(repr=False)
    centroids: FloatArray = field(repr=False)
    objective: float

    @property
    def labels(self) -> IntArray:
        """The number (n,) of the cluster in which each row has its largest membership."""
        return strongest_clusters(self.memberships, TIE)

    @property
    def n_coinciding(self) -> int:
        """The number of clusters with the same memberships as a lower-numbered one."""
        return count_coinciding_clusters(self.memberships, TIE)


def fuzzy_cmeans(
    X: FloatArray, starts: IntArray, fuzziness: float, max_iter: int
) -> FuzzyClustering:
    """Run fuzzy c-means from each row of ``starts`` and return the best run.

    If several runs reach the same optimum, the first of them is returned, because
    otherwise rounding would choose between runs that number their clusters differently.
    A run ends when no centroid moves by more than ``TOLERANCE`` times the data's
    spread.

    X: float64 (n, width).
    starts: int64 (n_init, n_clusters); row indices of the initial centroids in X.
    fuzziness: the exponent m, larger than 1.
    """
    X = np.ascontiguousarray(X)
    limit = TOLERANCE**2 * sum(float(column.var()) for column in X.T)  # no copy of X
    runs = [_run_from_start(X, X[rows], fuzziness, max_iter, limit) for rows in starts]
    best = min(objective for _, objective in runs)
    centroids, objective = next(run for run in runs if run[1] <= best * (1 + ALIKE))
    degrees = np.empty((len(X), len(centroids)))
    _fill_degrees(X, np.ascontiguousarray(centroids.T), fuzziness, degrees)
    return FuzzyClustering(
        memberships=degrees, centroids=centroids, objective=objective
    )


def _run_from_start(
    X: FloatArray,
    centroids: FloatArray,
    fuzziness: float,
    max_iter: int,
    limit: float,
) -> tuple[FloatArray, float]:
    """Return the centroids after at most ``max_iter`` moves, and their objective.

    limit: the run ends if no centroid moves by more than this squared distance.
    """
    shift = np.inf
    for n_moves in range(max_iter + 1):
        totals, weights = np.zeros_like(centroids), np.zeros(len(centroids))
        columns = np.ascontiguousarray(centroids.T)
        objective = _add_weighted(X, columns, fuzziness, totals, weights)
        if n_moves == max_iter or shift <= limit:
            break
        moved = totals / np.maximum(weights, np.finfo(np.float64).tiny)[:, None]
        shift = float(np.square(moved - centroids).sum(axis=1).max())
        centroids = moved
    return centroids, objective


def _distances_and_degrees(
    X: FloatArray, columns: FloatArray, fuzziness: float
) -> tuple[FloatArray, FloatArray]:
    """Return the squared distances (n, k) to the centroids, and the memberships (n, k).

    Memberships are computed from ratios to the smallest distance, so that no power
    overflows. A row that lies on several centroids belongs to each of them equally.

    columns: float64 (width, k); the transposed centroids.
    """
    squared = np.zeros((len(X), columns.shape[1]))
    for f, column in enumerate(columns):
        away = X[:, f, None] - column
        squared += away * away
    least = squared.min(axis=1, keepdims=True)
    is_least = squared == least
    ratio = np.divide(least, squared, out=np.ones_like(squared), where=~is_least)
    degrees = power(ratio, 1.0 / (fuzziness - 1.0))
    return squared, degrees / add_in_order(np.zeros(len(X)), degrees.T)[:, None]


@in_c("out")
def _fill_degrees(
    X: FloatArray, columns: FloatArray, fuzziness: float, out: FloatArray
) -> None:
    out[:] = _distances_and_degrees(X, columns, fuzziness)[1]


@in_c("totals", "weights")
def _add_weighted(
    X: FloatArray,
    columns: FloatArray,
    fuzziness: float,
    totals: FloatArray,
    weights: FloatArray,
) -> float:
    """Add all rows, weighted by membership, to sums by cluster; return the objective.

    u is the membership of a row x in a cluster.

    totals: float64 (k, width); Σ u^m x is added in place.
    weights: float64 (k,); Σ u^m is added in place.
    """
    squared, degrees = _distances_and_degrees(X, columns, fuzziness)
    weight = power(degrees, fuzziness)
    weights[:] = add_in_order(weights, weight)
    for c in range(len(totals)):
        totals[c] = add_in_order(totals[c], weight[:, c, None] * X)
    return float(add_in_order(0.0, (weight * squared).reshape(-1)))
