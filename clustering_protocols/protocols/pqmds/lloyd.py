"""Lloyd's k-means of few features and many centres: compiled, features first.

Rows are compared with all centres in blocks that stay in the cache: no matrix of rows
by centres is written, which is what a product followed by a search waits for.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from clustering_protocols.numerics.compilation import compile_kernel
from clustering_protocols.records.arrays import FloatArray, IntArray

MAX_ITERATIONS: Final = 25
_BLOCK: Final = 512
_LANES: Final = 4  # features per pass over a block; the rest is zeros


class QuantisedRows(NamedTuple):
    """Centres (size, d), and the number of its centre for each row (n,)."""

    centres: FloatArray
    codes: IntArray


def quantise(X: FloatArray, size: int, draws: FloatArray) -> QuantisedRows:
    """Return a codebook of at most ``size`` centres, and the codes of the rows.

    Equal rows are counted once. As many different rows as centres, or fewer: these are
    the centres. Otherwise k-means++ and at most :data:`MAX_ITERATIONS` iterations.

    X: float64 (n, d).
    draws: float64 (size,); uniform numbers of (0, 1), for the starts.
    """
    rows, weights, place = _different_rows(X)
    if len(rows) <= size:
        return QuantisedRows(rows, place)
    padded = -rows.shape[1] % _LANES
    features = np.ascontiguousarray(np.pad(rows, ((0, 0), (0, padded))).T)
    centres = np.ascontiguousarray(features[:, _starts(features, weights, draws)].T)
    codes = np.full(len(rows), -1, dtype=np.int64)
    for _ in range(MAX_ITERATIONS):
        if not _assign(features, centres, codes):
            break
        _move(features, weights, codes, centres)
    used = np.bincount(codes, minlength=size) > 0
    renumbered = (np.cumsum(used) - 1)[codes]
    return QuantisedRows(centres[used, : rows.shape[1]], renumbered[place])


def _different_rows(X: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return different rows, how often each occurs, and each row's place among them.

    Rows are sorted by one combination of their features. Where two different rows
    happen to agree in it, equal rows may be counted apart: that changes no distance.
    """
    key = X @ np.sqrt(2.0 + np.arange(X.shape[1]))
    order = np.argsort(key)
    ordered = X[order]
    new = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))
    place = np.empty(len(X), dtype=np.int64)
    place[order] = np.cumsum(new) - 1
    weights = np.bincount(place).astype(np.float64)
    return ordered[new], weights, place


@compile_kernel
def _starts(features: FloatArray, weights: FloatArray, draws: FloatArray) -> IntArray:
    """Return row numbers drawn by k-means++, each with its own uniform number."""
    d, n = features.shape
    near = np.full(n, np.inf)
    share = weights.copy()
    starts = np.zeros(len(draws), np.int64)
    for start in range(len(draws)):
        wanted = draws[start] * share.sum()
        row, so_far = 0, share[0]
        while so_far < wanted and row < n - 1:
            row += 1
            so_far += share[row]
        starts[start] = row
        away = np.zeros(n)
        for f in range(d):
            here = features[f, row]
            for i in range(n):
                away[i] += (features[f, i] - here) ** 2
        for i in range(n):
            near[i] = min(near[i], away[i])
            share[i] = weights[i] * near[i]
    return starts


@compile_kernel
def _assign(features: FloatArray, centres: FloatArray, codes: IntArray) -> bool:
    """Write the number of each row's nearest centre; return whether one changed.

    The nearest centre has the least ½|c|² - c·x.
    """
    d, n = features.shape
    half = np.empty(len(centres))
    for c in range(len(centres)):
        half[c] = 0.5 * np.sum(centres[c] ** 2)
    score, best = np.empty(_BLOCK), np.empty(_BLOCK)
    nearest = np.empty(_BLOCK, np.int64)
    changed = False
    for begin in range(0, n, _BLOCK):
        size = min(_BLOCK, n - begin)
        best[:] = np.inf
        for c in range(len(centres)):
            score[:] = half[c]
            for f in range(0, d, _LANES):
                _subtract_products(features, centres[c], f, begin, size, score)
            for i in range(size):
                better = score[i] < best[i]
                best[i] = score[i] if better else best[i]
                nearest[i] = c if better else nearest[i]
        for i in range(size):
            changed |= codes[begin + i] != nearest[i]
            codes[begin + i] = nearest[i]
    return changed


@compile_kernel
def _subtract_products(
    features: FloatArray,
    centre: FloatArray,
    f: int,
    begin: int,
    size: int,
    score: FloatArray,
) -> None:
    """Subtract the products of four features of a block of rows with a centre's."""
    end = begin + size
    x0, x1 = features[f, begin:end], features[f + 1, begin:end]
    x2, x3 = features[f + 2, begin:end], features[f + 3, begin:end]
    c0, c1, c2, c3 = centre[f], centre[f + 1], centre[f + 2], centre[f + 3]
    for i in range(size):
        score[i] -= c0 * x0[i] + c1 * x1[i] + c2 * x2[i] + c3 * x3[i]


@compile_kernel
def _move(
    features: FloatArray, weights: FloatArray, codes: IntArray, centres: FloatArray
) -> None:
    """Move each centre to the mean of its rows; one without rows stays."""
    d, n = features.shape
    sums = np.zeros(centres.shape)
    counts = np.zeros(len(centres))
    for i in range(n):
        counts[codes[i]] += weights[i]
        for f in range(d):
            sums[codes[i], f] += weights[i] * features[f, i]
    for c in range(len(centres)):
        if counts[c] > 0:
            for f in range(d):  # a slice would make the compiler take twice as long
                centres[c, f] = sums[c, f] / counts[c]
