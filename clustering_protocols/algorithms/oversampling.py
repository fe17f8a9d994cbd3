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
    """Return row numbers (n_init, n_clusters); so many are tried for each centre.

    All starts are drawn from one oversampling. Where it found fewer different rows than
    clusters, each start is these and any others: centroids that are equal then give way
    to the farthest rows, or stay without any.
    """
    from sklearn.cluster import kmeans_plusplus  # no party draws starts

    chosen, weights = _candidates(rows, n_clusters, rng)
    lacking = n_clusters - len(chosen)
    if lacking > 0:
        others = rng.integers(rows.n_rows, size=(n_init, lacking))
        return np.hstack([np.tile(chosen, (n_init, 1)), others])
    points, seeds = rows.at(chosen), rng.integers(2**31, size=n_init)
    drawn = [
        kmeans_plusplus(
            points,
            n_clusters,
            sample_weight=weights,
            random_state=int(seed),
            n_local_trials=trials,
        )[1]
        for seed in seeds
    ]
    starts: IntArray = chosen[np.array(drawn)]
    return starts


def _candidates(
    rows: ScaledRows, n_clusters: int, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Return numbers of different rows, and how many rows are nearest to each."""
    n = rows.n_rows
    key = rng.integers(2**64, size=2, dtype=np.uint64)
    chosen = rng.integers(n, size=1)
    away = np.full(n, np.inf)
    first = 0
    for number in range(_PASSES):
        _bring_nearer(rows, chosen[first:], away)
        total = _total(away)
        if total == 0:
            break
        first = len(chosen)
        share = _OVERSAMPLING * n_clusters / total
        drawn = [
            begin
            + np.flatnonzero(uniform(key, number, begin, end) < share * away[begin:end])
            for begin, end in _spans(n)
        ]
        chosen = np.concatenate([chosen, *drawn])
    weights = rows.counts(rows.at(chosen))
    there = weights > 0
    return chosen[there], weights[there].astype(np.float64)


def _bring_nearer(rows: ScaledRows, chosen: IntArray, away: FloatArray) -> None:
    if not len(chosen):
        return
    for block, found in rows.nearest(rows.at(chosen)):
        np.minimum(away[block], found.away, out=away[block])


def _total(away: FloatArray) -> float:
    """Return the sum of squared distances (n,), exactly the same whatever the blocks."""
    (unit,) = units_below(np.array([len(away) * away.max()]))
    return sum(
        int(np.rint(away[begin:end] * unit).astype(np.int64).sum())
        for begin, end in _spans(len(away))
    ) / float(unit)


def _spans(n: int) -> Iterator[tuple[int, int]]:
    """Yield where rows begin and end that are looked at together."""
    for begin in range(0, n, _AT_ONCE):
        yield begin, min(begin + _AT_ONCE, n)


def uniform(key: WordArray, number: int, begin: int, end: int) -> FloatArray:
    """Return the uniform numbers of [0, 1) of rows begin … end-1 in a pass."""
    skipped = begin % _WORDS
    counter = np.array([begin // _WORDS, 0, number, 0], dtype=np.uint64)
    counted = np.random.Generator(np.random.Philox(key=key, counter=counter))
    return counted.random(end - begin + skipped)[skipped:]
