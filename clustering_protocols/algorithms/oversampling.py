"""Initial centroids for k-means on many rows, drawn by k-means‖.

B. Bahmani, B. Moseley, A. Vattani, R. Kumar, S. Vassilvitskii, "Scalable k-means++",
2012. In each of a few passes, rows are drawn independently with probabilities
proportional to their squared distances from the rows drawn so far. k-means++ then draws
initial centroids among these candidates, weighted by the number of nearest rows.

A counter-based generator (Philox4x64-10; J. K. Salmon, M. A. Moraes, R. O. Dror, D. E.
Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011) decides from a random key,
the number of the pass and the index of the row alone whether the row is drawn, and
squared distances are added up as integers. Blocks and threads therefore do not matter.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clustering_protocols.numerics.row_blocks import iterate_slices
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray

from .lloyd import ScaledRows, power_of_two_units

_PASSES: Final = 5
_OVERSAMPLING: Final = 2  # expected rows per pass and cluster, as in the paper
_WORDS: Final = 4  # Philox generates this many words per counter value
_SPAN_ROWS: Final = 1 << 16


def draw_starts(
    rows: ScaledRows,
    n_clusters: int,
    n_init: int,
    rng: np.random.Generator,
    trials: int,
) -> IntArray:
    """Draw initial centroids (n_init, n_clusters), as row indices, by k-means‖.

    All starts are drawn from the same candidates. If there are fewer candidates than
    clusters, each start consists of all candidates and of random rows. Lloyd's
    iteration then moves all but one of several equal centroids to far rows.

    trials: the number of candidates that k-means++ tries for each centre.
    """
    from sklearn.cluster import kmeans_plusplus  # parties never need it

    candidates, weights = _draw_candidates(rows, n_clusters, rng)
    n_missing = n_clusters - len(candidates)
    if n_missing > 0:
        fillers = rng.integers(rows.n_rows, size=(n_init, n_missing))
        return np.hstack([np.tile(candidates, (n_init, 1)), fillers])
    points, seeds = rows.take(candidates), rng.integers(2**31, size=n_init)
    draws = [
        kmeans_plusplus(
            points,
            n_clusters,
            sample_weight=weights,
            random_state=int(seed),
            n_local_trials=trials,
        )[1]
        for seed in seeds
    ]
    starts: IntArray = candidates[np.array(draws)]
    return starts


def _draw_candidates(
    rows: ScaledRows, n_clusters: int, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Return the indices of candidate rows, and the number of rows nearest to each."""
    n = rows.n_rows
    key = rng.integers(2**64, size=2, dtype=np.uint64)
    numbers = rng.integers(n, size=1)
    distances = np.full(n, np.inf)
    n_measured = 0
    for pass_number in range(_PASSES):
        if len(numbers) > n_measured:
            for block, nearest in rows.iter_nearest(rows.take(numbers[n_measured:])):
                np.minimum(distances[block], nearest.squared, out=distances[block])
        total = _sum_exactly(distances)
        if total == 0:
            break
        n_measured = len(numbers)
        share = _OVERSAMPLING * n_clusters / total
        draws = [
            span.start
            + np.flatnonzero(
                draw_uniform(key, pass_number, span) < share * distances[span]
            )
            for span in iterate_slices(n, _SPAN_ROWS)
        ]
        numbers = np.concatenate([numbers, *draws])
    weights = np.zeros(len(numbers))
    for _, nearest in rows.iter_nearest(rows.take(numbers)):
        weights += np.bincount(nearest.labels, minlength=len(numbers))
    nonempty = weights > 0
    return numbers[nonempty], weights[nonempty]


def _sum_exactly(distances: FloatArray) -> float:
    """Return the sum of squared distances (n,); it does not depend on the order."""
    (unit,) = power_of_two_units(np.array([len(distances) * distances.max()]))
    return sum(
        int(np.rint(distances[span] * unit).astype(np.int64).sum())
        for span in iterate_slices(len(distances), _SPAN_ROWS)
    ) / float(unit)


def draw_uniform(key: WordArray, pass_number: int, span: slice) -> FloatArray:
    """Return a uniform random number in [0, 1) for each row of a span in a pass."""
    begin, skipped = divmod(span.start, _WORDS)
    counter = np.array([begin, 0, pass_number, 0], dtype=np.uint64)
    generator = np.random.Generator(np.random.Philox(key=key, counter=counter))
    numbers: FloatArray = generator.random(span.stop - span.start + skipped)
    return numbers[skipped:]
