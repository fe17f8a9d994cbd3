"""The passes over rows: compiled, one read of the rows, O(block × k) of memory.

Every term is rounded to whole units before it is added. Whole numbers below 2^53 add up
exactly in float64, so a sum depends neither on batches nor on how rows are cut into
parties; the caller's encoding sees to it that no sum is larger.

Rows are handled in blocks that stay in the cache, features first, so that the inner
loops run over rows and become vector instructions whatever k and F are. Arithmetic is
IEEE's, in the order written: a row gets the same memberships on every machine.
"""

from __future__ import annotations

import numpy as np

from clustering_protocols.algorithms.row_kernels import (
    BLOCK,
    distances,
    nearest_of_block,
    nearest_sums,
    scaled_block,
)
from clustering_protocols.numerics.compilation import (
    compile_in_any_order,
    compile_kernel,
    compile_once,
)
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray


@compile_kernel
def _memberships(
    D: FloatArray, size: int, smallest: FloatArray, exponent: float, total: FloatArray
) -> None:
    """Turn squared distances into memberships μ (k, size), in place.

    Equation 6 of Corcuera Bárcena et al., from ratios to the smallest distance: nothing
    overflows, and a row on h coincident centroids belongs 1/h to each.
    ``exponent`` is 1/(λ-1).
    """
    for i in range(size):
        total[i] = 0.0
    for c in range(D.shape[0]):
        if exponent == 1.0:
            for i in range(size):
                near = D[c, i] == smallest[i]
                D[c, i] = 1.0 if near else smallest[i] / D[c, i]
                total[i] += D[c, i]
        else:
            for i in range(size):
                near = D[c, i] == smallest[i]
                D[c, i] = 1.0 if near else (smallest[i] / D[c, i]) ** exponent
                total[i] += D[c, i]
    for c in range(D.shape[0]):
        for i in range(size):
            D[c, i] /= total[i]


@compile_in_any_order
def _sum_units(a: FloatArray, b: FloatArray, unit: float, size: int) -> float:
    """Return Σ round(a · b · unit), exact in any order."""
    total = 0.0
    for i in range(size):
        total += np.rint(a[i] * b[i] * unit)
    return total


def cmeans_sums(
    X: FloatArray,
    offset: FloatArray,
    inverse: FloatArray,
    V: FloatArray,
    units: FloatArray,
    sums: FloatArray,
    counts: FloatArray,
) -> None:
    """Add a batch's share of Ls_c and n_c (equation 3), in whole units.

    X, offset, inverse, V, units: as in
        :func:`~clustering_protocols.algorithms.row_kernels.nearest_sums`.
    sums: float64 (k, F), added to; whole numbers below 2^53, as the caller's encoding
        sees to.
    counts: float64 (k,), added to.
    """
    own, own_counts = np.zeros(V.shape, np.int64), np.zeros(len(V), np.int64)
    nobody = (np.zeros(2), np.zeros(2, np.int64))
    nearest_sums(X, offset, inverse, V, units, own, own_counts, *nobody, 0.0)
    sums += own
    counts += own_counts


@compile_once(4)
def fuzzy_sums(
    X: FloatArray,
    offset: FloatArray,
    inverse: FloatArray,
    V: FloatArray,
    fuzzifier: float,
    units: FloatArray,
    weight_unit: float,
    sums: FloatArray,
    weights: FloatArray,
) -> None:
    """Add a batch's share of WS_c and u_c (algorithm 3), in whole units.

    X, offset, inverse, V, units, sums: as in :func:`cmeans_sums`.
    fuzzifier: λ > 1.
    weights: float64 (k,), added to; Σ μ^λ.
    """
    n, n_features = X.shape
    n_clusters = V.shape[0]
    block = np.empty((n_features, BLOCK))
    D = np.empty((n_clusters, BLOCK))
    smallest, total = np.empty(BLOCK), np.empty(BLOCK)
    labels = np.empty(BLOCK, np.int64)
    ones = np.ones(BLOCK)
    exponent = 1.0 / (fuzzifier - 1.0)
    for begin in range(0, n, BLOCK):
        size = min(BLOCK, n - begin)
        scaled_block(X, begin, size, offset, inverse, block)
        distances(block, size, V, D)
        nearest_of_block(D, size, 0.0, labels, smallest)
        _memberships(D, size, smallest, exponent, total)
        _raise(D, size, fuzzifier)
        for c in range(n_clusters):
            weights[c] += _sum_units(D[c], ones, weight_unit, size)
            for f in range(n_features):
                sums[c, f] += _sum_units(D[c], block[f], units[f], size)


@compile_kernel
def _raise(D: FloatArray, size: int, fuzzifier: float) -> None:
    """Turn μ into μ^λ, in place."""
    for c in range(D.shape[0]):
        for i in range(size):
            D[c, i] = D[c, i] * D[c, i] if fuzzifier == 2.0 else D[c, i] ** fuzzifier


@compile_once(4)
def assign(
    X: FloatArray,
    offset: FloatArray,
    inverse: FloatArray,
    V: FloatArray,
    exponent: float,
    labels: IntArray,
    memberships: FloatArray,
    within: FloatArray,
) -> None:
    """Write a batch's labels, memberships and distances to its centroid.

    X, offset, inverse, V: as in :func:`cmeans_sums`.
    exponent: 1/(λ-1); 0 for c-means, where memberships are 0 and 1.
    labels: int64 (n,), written.
    memberships: float64 (n, k), written.
    within: float64 (n, k), written; squared distances.
    """
    n, n_features = X.shape
    block = np.empty((n_features, BLOCK))
    D = np.empty((V.shape[0], BLOCK))
    smallest, total = np.empty(BLOCK), np.empty(BLOCK)
    for begin in range(0, n, BLOCK):
        size = min(BLOCK, n - begin)
        scaled_block(X, begin, size, offset, inverse, block)
        distances(block, size, V, D)
        nearest_of_block(D, size, 0.0, labels[begin : begin + size], smallest)
        for i in range(size):
            for c in range(V.shape[0]):
                within[begin + i, c] = D[c, i]
        if exponent > 0.0:
            _memberships(D, size, smallest, exponent, total)
        for i in range(size):
            for c in range(V.shape[0]):
                hard = 1.0 if labels[begin + i] == c else 0.0
                memberships[begin + i, c] = D[c, i] if exponent > 0.0 else hard


@compile_once(4)
def distance_units(
    X: FloatArray,
    offset: FloatArray,
    inverse: FloatArray,
    V: FloatArray,
    unit: float,
    places: IntArray,
    words: WordArray,
) -> None:
    """Write squared distances as ring elements, each row at its place.

    X, offset, inverse, V: as in :func:`cmeans_sums`.
    places: int64 (n,); where each row of the batch travels.
    words: uint64 (n_rows, k), written.
    """
    n, n_features = X.shape
    block = np.empty((n_features, BLOCK))
    D = np.empty((V.shape[0], BLOCK))
    for begin in range(0, n, BLOCK):
        size = min(BLOCK, n - begin)
        scaled_block(X, begin, size, offset, inverse, block)
        distances(block, size, V, D)
        for i in range(size):
            for c in range(V.shape[0]):
                words[places[begin + i], c] = np.uint64(np.rint(D[c, i] * unit))
