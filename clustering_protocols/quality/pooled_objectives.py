"""Compare the objective of a session's labels with those of pooled clusterings."""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.spatial.distance import pdist

from clustering_protocols.algorithms.fuzzy_cmeans import fuzzy_cmeans
from clustering_protocols.algorithms.kmeans import Clustering, draw_starts, kmeans
from clustering_protocols.algorithms.kmedoids import draw_medoids, kmedoids
from clustering_protocols.numerics.objectives import Objectives
from clustering_protocols.numerics.randomness import seeded_generator
from clustering_protocols.numerics.scores import adjusted_rand
from clustering_protocols.records.arrays import FloatArray, IntArray

N_INIT: Final = 10
_MAX_ITER: Final = 300
_MOST_ROWS: Final = 5_000
"""k-medoids is not run on more rows than this, because it needs all pairwise distances."""


def inertia(Z: FloatArray, labels: IntArray) -> float:
    """Return the sum of squared distances of rows Z (n, m) to their clusters' means."""
    k = int(labels.max()) + 1
    sums = np.zeros((k, Z.shape[1]))
    np.add.at(sums, labels, Z)
    means = sums / np.maximum(np.bincount(labels, minlength=k), 1)[:, None]
    return float(np.square(Z - means[labels]).sum())


def draw_ten_starts(Z: FloatArray, k: int) -> IntArray:
    """Draw ten starts (10, k) as row indices, in the way of scikit-learn's k-means."""
    rng = seeded_generator(0, "objective", "starts")
    return draw_starts(Z, k, N_INIT, rng, trials=2 + int(np.log(k)))


def pooled_kmeans(Z: FloatArray, k: int) -> Clustering:
    """Run k-means on rows Z (n, m) from ten starts and return the best clustering."""
    return kmeans(Z, draw_ten_starts(Z, k), _MAX_ITER)


def compare_kmeans(
    Z: FloatArray, labels: IntArray, k: int, reduced: FloatArray | None = None
) -> Objectives:
    """Compare the inertia of labels (n,) with that of pooled k-means with k clusters.

    Z: float64 (n, m); the pooled rows, in the units in which inertia is measured.
    reduced: float64 (n, w); the same rows without the dimensions that the session's
        rules exclude. If given, k-means of these rows is compared too.
    """
    same_rules = (
        None if reduced is None else inertia(Z, pooled_kmeans(reduced, k).labels)
    )
    best = pooled_kmeans(Z, k)
    agreement = adjusted_rand(best.labels, labels)
    return Objectives(inertia(Z, labels), best.inertia, agreement, same_rules)


def fuzzy_objective(Z: FloatArray, U: FloatArray, fuzziness: float) -> float:
    """Return Σ μ^m d² for memberships U (n, k) and distances to the weighted means."""
    weights = U**fuzziness
    V = weights.T @ Z / np.maximum(weights.sum(axis=0), np.finfo(float).tiny)[:, None]
    return sum(
        float(weights[:, c] @ np.square(Z - V[c]).sum(axis=1)) for c in range(len(V))
    )


def compare_fuzzy_cmeans(Z: FloatArray, U: FloatArray, fuzziness: float) -> Objectives:
    """Compare Σ μ^m d² of memberships U (n, k) with that of pooled fuzzy c-means."""
    best = fuzzy_cmeans(Z, draw_ten_starts(Z, U.shape[1]), fuzziness, _MAX_ITER)
    agreement = None
    if not best.n_coinciding:
        agreement = adjusted_rand(best.labels, U.argmax(axis=1))
    return Objectives(fuzzy_objective(Z, U, fuzziness), best.objective, agreement)


def compare_kmedoids(Z: FloatArray, labels: IntArray, k: int) -> Objectives | None:
    """Compare labels with pooled k-medoids; return None for more than 5,000 rows."""
    if len(Z) > _MOST_ROWS:
        return None
    starts = draw_medoids(
        len(Z), k, N_INIT, seeded_generator(0, "objective", "medoids")
    )
    best = kmedoids(pdist(Z), starts, _MAX_ITER)
    return Objectives(
        _medoid_cost(Z, labels),
        _medoid_cost(Z, best.labels),
        adjusted_rand(best.labels, labels),
    )


def _medoid_cost(Z: FloatArray, labels: IntArray) -> float:
    total = 0.0
    for c in np.unique(labels):
        own = Z[labels == c]
        D = np.array([np.linalg.norm(own - row, axis=1).sum() for row in own])
        total += float(D.min())
    return total
