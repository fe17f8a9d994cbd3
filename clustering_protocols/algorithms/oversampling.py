"""Starts of k-means on many rows: k-means‖.

B. Bahmani, B. Moseley, A. Vattani, R. Kumar, S. Vassilvitskii, "Scalable k-means++",
2012. Each of a few passes draws rows independently, with probabilities proportional to
their squared distances from the rows drawn before; k-means++ then draws starts among these
candidates, each weighted by the number of rows that are nearest to it.

Whether a pass draws a row follows from a random key, the pass and the row's number
alone, by a counter-based generator (Philox4x64-10; J. K. Salmon, M. A. Moraes, R. O. Dror,
D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011), and the squared distances
are added up as integers: neither blocks nor threads change which rows are drawn.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clustering_protocols.numerics.row_blocks import slices
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray

from .lloyd import ScaledRows, power_of_two_units

_PASSES: Final = 5
_OVERSAMPLING: Final = 2  # expected rows per pass and cluster, as in the paper
_WORDS: Final = 4  # words that Philox generates per counter value
_SPAN_ROWS: Final = 1 << 16


def draw_starts(
    rows: ScaledRows,
    n_clusters: int,
    n_init: int,
    rng: np.random.Generator,
    trials: int,
) -> IntArray:
    """Return row numbers (n_init, n_clusters), trying ``trials`` rows for each centre.

    All starts are drawn from the same candidates. If there are fewer candidates than
    clusters, each start consists of all candidates and further random rows; then
    Lloyd's iteration moves all but one of equal centroids to the farthest rows, if any.
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
    """Return numbers of different rows, and how many rows are nearest to each."""
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
            for span in slices(n, _SPAN_ROWS)
        ]
        numbers = np.concatenate([numbers, *draws])
    weights = rows.count_by_nearest(rows.take(numbers))
    nonempty = weights > 0
    return numbers[nonempty], weights[nonempty].astype(np.float64)


def _sum_exactly(distances: FloatArray) -> float:
    """Return the sum of squared distances (n,), the same whatever the blocks."""
    (unit,) = power_of_two_units(np.array([len(distances) * distances.max()]))
    return sum(
        int(np.rint(distances[span] * unit).astype(np.int64).sum())
        for span in slices(len(distances), _SPAN_ROWS)
    ) / float(unit)


def draw_uniform(key: WordArray, pass_number: int, span: slice) -> FloatArray:
    """Return the uniform numbers in [0, 1) of the rows of a span in a pass."""
    begin, skipped = divmod(span.start, _WORDS)
    counter = np.array([begin, 0, pass_number, 0], dtype=np.uint64)
    generator = np.random.Generator(np.random.Philox(key=key, counter=counter))
    numbers: FloatArray = generator.random(span.stop - span.start + skipped)
    return numbers[skipped:]
