"""Figures that compare runs: the gap statistic, stability and prediction strength.

Gap statistic: R. Tibshirani, G. Walther, T. Hastie, "Estimating the number of clusters
in a data set via the gap statistic", 2001. W_k is the inertia of k clusters. W_k* is
the inertia of k clusters of B reference sets, whose rows are drawn uniformly from the
box around X along its principal axes (variant b of the paper). Then

    gap(k) = mean log W_k* - log W_k,   s_k = sd(log W_k*) · sqrt(1 + 1/B).

The gap of a single cluster is always computed, because one may be the right number. The
paper chooses the smallest k with gap(k) ≥ gap(k + 1) - s_(k + 1), which is one cluster
if the rows do not divide well into two. This module compares gap(1) with the gap of
every other number of clusters.

Stability: random halves of the rows are clustered by k-means, and all rows are then
labelled by the nearest centroids of each half. Stability is the mean adjusted Rand
index over all pairs of these labellings (A. Ben-Hur, A. Elisseeff, I. Guyon, "A
stability based method for discovering structure in clustered data", 2002, with labels
for all rows as in T. Lange, V. Roth, M. L. Braun, J. M. Buhmann, "Stability-based
validation of clustering solutions", 2004).

Prediction strength (R. Tibshirani and G. Walther, "Cluster validation by prediction
strength", 2005): the rows are split into two halves, both are clustered, and the rows
of one half are also labelled by the nearest centroids of the other. For each cluster of
a half, the proportion of its pairs of rows that stay together under the other half's
labels is computed. The minimum of these is averaged over splits and both directions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import numpy as np

from clustering_protocols.algorithms.kmeans import (
    Clustering,
    draw_starts,
    kmeans,
    nearest_centroids,
)
from clustering_protocols.contract import Run, SessionContext
from clustering_protocols.numerics import row_blocks
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.numerics.row_blocks import RowBlocks
from clustering_protocols.records.arrays import FloatArray, IntArray

_MOST_ROWS: Final = 5_000
_MOST_NUMBERS: Final = 500_000


def compare_runs(
    session: SessionContext,
    rows: FloatArray | RowBlocks,
    numbers: Sequence[int],
    runs: Sequence[Run],
) -> list[Run]:
    """Return the k-means runs with the figures that compare them added.

    A single run is returned unchanged. Large data are sampled, because the cost grows
    with the number of rows, of runs and of reference sets.

    rows: float64 (n, width), or RowBlocks; the data that were clustered.
    numbers: the number of clusters of each run.
    """
    if len(runs) < 2:
        return list(runs)
    blocks = row_blocks.as_row_blocks(rows)
    n, width = blocks.shape
    limit = min(_MOST_ROWS, max(_MOST_NUMBERS // width, 1))
    if n <= limit:
        X = blocks.load()
    else:
        sample = session.generator("quality", "rows").permutation(n)[:limit]
        X = blocks.take(np.sort(sample))
    run_gaps = gap_statistics(X, numbers, session.generator("quality", "gap"))
    by_number = {gap.n_clusters: gap for gap in run_gaps}
    gap_of_one = by_number[1].gap if 1 in by_number else None
    compared = []
    for k, run in zip(numbers, runs, strict=True):
        gap = by_number.get(k)
        comparisons = {
            "gap": gap and gap.gap,
            "gap_error": gap and gap.error,
            "gap_of_one": gap_of_one,
            "stability": stability(X, k, session.generator("quality", "stability", k)),
            "prediction_strength": prediction_strength(
                X, k, session.generator("quality", "prediction", k)
            ),
        }
        figures = run.figures and run.figures.model_copy(update=comparisons)
        compared.append(replace(run, figures=figures))
    return compared


REFERENCES: Final = 10
"""B, the number of reference sets of uniform rows, which have no clusters."""
STABLE: Final = 0.95
"""The lowest stability (a mean adjusted Rand index) that is evidence of clusters."""
_STARTS: Final = 2
_MAX_ITER: Final = 30  # k-means converges slowly on rows that have no clusters
_ROUNDING: Final = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """The gap statistic for one number of clusters, and its standard error s_k."""

    n_clusters: int
    gap: float
    error: float


def gap_statistics(
    X: FloatArray,
    numbers: Sequence[int],
    rng: np.random.Generator,
) -> list[Gap]:
    """Return the gap statistic of each number of clusters and of 1, in ascending order.

    The first number of clusters for which the inertia is 0 is omitted, and so are all
    larger ones. The result is therefore empty if all rows are equal.

    X: float64 (n, width).
    numbers: the numbers of clusters k, each at least 1.
    """
    counts = sorted({1, *numbers})
    inertias = _lowest_inertias(X, counts, rng)
    draw = _fit_box(X)
    references = [_lowest_inertias(draw(rng), counts, rng) for _ in range(REFERENCES)]
    rounding = _ROUNDING * inertias[0]
    results: list[Gap] = []
    for index, k in enumerate(counts):
        reference_inertias = np.array([row[index] for row in references])
        if not min(inertias[index], reference_inertias.min()) > rounding:
            break
        logs = np.log(reference_inertias)
        results.append(
            Gap(
                n_clusters=k,
                gap=float(logs.mean() - np.log(inertias[index])),
                error=float(logs.std() * np.sqrt(1 + 1 / REFERENCES)),
            )
        )
    return results


def favours_one_cluster(runs: Sequence[Figures]) -> bool | None:
    """Return whether several runs suggest a single cluster, or None if gaps are missing.

    A single cluster is suggested if gap(1) ≥ gap(k) - s_k for every other k and no run
    is stable. A stable clustering is evidence of clusters, whatever the gaps are.
    """
    several = [run for run in runs if run.gap is not None and run.n_clusters > 1]
    if not several or (gap_of_one := several[0].gap_of_one) is None:
        return None
    if any(run.stability is not None and run.stability >= STABLE for run in several):
        return False
    return all(
        gap_of_one >= (run.gap or 0.0) - (run.gap_error or 0.0) for run in several
    )


def _lowest_inertias(
    X: FloatArray, numbers: Sequence[int], rng: np.random.Generator
) -> list[float]:
    inertias, n_different = [], len(np.unique(X, axis=0))
    for k in numbers:
        if k == 1:
            inertias.append(float(np.square(X - X.mean(axis=0)).sum()))
        elif k >= n_different:
            inertias.append(0.0)
        else:
            starts = draw_starts(X, k, _STARTS, rng)
            inertias.append(kmeans(X, starts, _MAX_ITER).inertia)
    return inertias


def _fit_box(X: FloatArray) -> Callable[[np.random.Generator], FloatArray]:
    """Return a function that draws uniform rows from the smallest box around X.

    The sides of the box are parallel to the principal axes of X. The function returns
    as many rows as X has, around the mean 0.
    """
    centred = X - X.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    # axes have arbitrary signs, so make the largest entry of each positive
    largest = np.abs(vectors).argmax(axis=0)
    axes = (vectors * np.sign(vectors[largest, np.arange(len(vectors))])).T
    rotated = centred @ axes.T
    low, high = rotated.min(axis=0), rotated.max(axis=0)
    return lambda rng: np.ascontiguousarray(rng.uniform(low, high, X.shape) @ axes)


HALVES: Final = 10
"""The number of random halves."""
SPLITS: Final = 5
_HALF_STARTS: Final = 3
_HALF_MAX_ITER: Final = 100


def stability(X: FloatArray, n_clusters: int, rng: np.random.Generator) -> float | None:
    """Return how similarly random halves of rows X (n, width) are clustered, at most 1.

    The result is None for a single cluster, or if a half has no more distinct rows than
    clusters.
    """
    labels = []
    for _ in range(HALVES):
        half = X[np.sort(rng.permutation(len(X))[: len(X) // 2])]
        clustering = _cluster_half(X, half, n_clusters, rng)
        if clustering is None:
            return None
        labels.append(nearest_centroids(X, clustering.centroids))
    agreements = [
        fast_adjusted_rand(*pair, n_clusters) for pair in combinations(labels, 2)
    ]
    return float(np.mean(agreements))


def prediction_strength(
    X: FloatArray, n_clusters: int, rng: np.random.Generator
) -> float | None:
    """Return the prediction strength of clusterings of rows X (n, width), at most 1.

    The result is None in the same cases as for :func:`stability`.
    """
    strengths = []
    for _ in range(SPLITS):
        order = rng.permutation(len(X))
        halves = [X[np.sort(part)] for part in np.array_split(order, 2)]
        first, second = (_cluster_half(X, half, n_clusters, rng) for half in halves)
        if first is None or second is None:
            return None
        trials = zip(halves, (first, second), (second, first), strict=True)
        for half, own, other in trials:
            strengths.append(
                smallest_confirmed_proportion(
                    own.labels, nearest_centroids(half, other.centroids)
                )
            )
    return float(np.mean(strengths))


def _cluster_half(
    X: FloatArray, half: FloatArray, n_clusters: int, rng: np.random.Generator
) -> Clustering | None:
    can_differ = n_clusters >= 2 and len(X) // 2 > n_clusters
    if not can_differ or len(np.unique(half, axis=0)) <= n_clusters:
        return None
    return kmeans(
        half, draw_starts(half, n_clusters, _HALF_STARTS, rng), _HALF_MAX_ITER
    )


def fast_adjusted_rand(first: IntArray, second: IntArray, n_clusters: int) -> float:
    """Return the adjusted Rand index of two labellings with labels below ``n_clusters``.

    The result equals :func:`~clustering_protocols.numerics.scores.adjusted_rand`, which
    must first find out which labels occur. This takes fifty times as long for a few
    hundred rows, and a session with several runs computes hundreds of indices.

    first, second: int64 (n,); labels in [0, n_clusters), with n ≥ 1.
    """
    table = np.bincount(first * n_clusters + second, minlength=n_clusters**2)
    table = table.reshape(n_clusters, n_clusters)
    # pairs of rows that both labellings put together, that each does, and all pairs
    both, in_first, in_second, pairs = (
        int((counts * (counts - 1)).sum())
        for counts in (table, table.sum(axis=1), table.sum(axis=0), table.sum())
    )
    if in_first == in_second == both:  # equal partitions, for which pairs may be 0
        return 1.0
    expected = in_first * in_second / pairs
    return (both - expected) / ((in_first + in_second) / 2 - expected)


def smallest_confirmed_proportion(own: IntArray, predicted: IntArray) -> float:
    """Return the smallest proportion, over all clusters, of pairs that are confirmed.

    A pair of rows of a cluster is confirmed if ``predicted`` gives both the same label.

    Clusters of a single row have no pairs and are ignored.

    own, predicted: int64 (n,); labels, none of them negative.
    """
    table = np.zeros((int(own.max()) + 1, int(predicted.max()) + 1))
    np.add.at(table, (own, predicted), 1)
    sizes = table.sum(axis=1)
    several = sizes > 1
    pairs = (table * (table - 1)).sum(axis=1)[several]
    return float((pairs / (sizes * (sizes - 1))[several]).min(initial=1.0))
