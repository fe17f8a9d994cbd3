"""Starts of k-means of many rows: k-means‖.

B. Bahmani, B. Moseley, A. Vattani, R. Kumar, S. Vassilvitskii, "Scalable k-means++",
2012. A few passes draw some rows each, independently, with a probability that grows with
the squared distance to what was drawn before; starts are then drawn among these by
k-means++, each with the number of rows that are nearest to it as its weight.

Whether a row is drawn in a pass follows from the key, the pass and the row's number
alone, by a generator that counts (Philox4x64-10; J. K. Salmon, M. A. Moraes, R. O. Dror,
D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011), and the sum of squared
distances is one of whole numbers: neither blocks nor threads change what is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray

from .lloyd import ScaledRows, units_below

_PASSES: Final = 5
_OVERSAMPLING: Final = 2  # rows per pass and cluster to expect, as in the paper
_WORDS: Final = 4  # that Philox gives per count
_AT_ONCE: Final = 1 << 16


def draw(
    rows: ScaledRows,
    n_clusters: int,
    n_init: int,
    rng: np.random.Generator,
    trials: int,
) -> IntArray:
    """Return row numbers (n_init, n_clusters), with ``trials`` rows for each centre.

    All starts are drawn from one oversampling. If it has fewer different rows than
    clusters, each start is these and any others: equal centroids then give way to the
    farthest rows, or stay empty.
    """
    from sklearn.cluster import kmeans_plusplus  # no party draws starts

    candidates, weights = _candidates(rows, n_clusters, rng)
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


def _candidates(
    rows: ScaledRows, n_clusters: int, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Return numbers of different rows, and how many rows are nearest to each."""
    n = rows.n_rows
    key = rng.integers(2**64, size=2, dtype=np.uint64)
    numbers = rng.integers(n, size=1)
    distances = np.full(n, np.inf)
    first = 0
    for pass_number in range(_PASSES):
        if len(numbers) > first:
            for block, nearest in rows.nearest(rows.take(numbers[first:])):
                np.minimum(distances[block], nearest.away, out=distances[block])
        total = _total(distances)
        if total == 0:
            break
        first = len(numbers)
        share = _OVERSAMPLING * n_clusters / total
        draws = [
            begin
            + np.flatnonzero(
                uniform(key, pass_number, begin, end) < share * distances[begin:end]
            )
            for begin, end in _spans(n)
        ]
        numbers = np.concatenate([numbers, *draws])
    weights = rows.counts(rows.take(numbers))
    nonempty = weights > 0
    return numbers[nonempty], weights[nonempty].astype(np.float64)


def _total(distances: FloatArray) -> float:
    """Return the sum of squared distances (n,), the same whatever the blocks."""
    (unit,) = units_below(np.array([len(distances) * distances.max()]))
    return sum(
        int(np.rint(distances[begin:end] * unit).astype(np.int64).sum())
        for begin, end in _spans(len(distances))
    ) / float(unit)


def _spans(n: int) -> Iterator[tuple[int, int]]:
    for begin in range(0, n, _AT_ONCE):
        yield begin, min(begin + _AT_ONCE, n)


def uniform(key: WordArray, pass_number: int, begin: int, end: int) -> FloatArray:
    """Return the uniform numbers of [0, 1) of rows begin … end-1 in a pass."""
    skipped = begin % _WORDS
    counter = np.array([begin // _WORDS, 0, pass_number, 0], dtype=np.uint64)
    generator = np.random.Generator(np.random.Philox(key=key, counter=counter))
    return generator.random(end - begin + skipped)[skipped:]
