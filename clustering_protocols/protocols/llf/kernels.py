"""Kernels that read the rows once, with O(block × k) memory.

Every term is rounded to whole units before it is added. Integers below 2^53 add up
exactly in float64, so a sum depends neither on batches nor on how rows are divided
among parties. The caller's encoding keeps sums below 2^53.

Rows are processed in blocks that fit in the cache. The first axis of a block is that of
features, so that the inner loops run over rows and compile to vector instructions for
any k and F. IEEE operations are executed in the order written, so memberships are the
same on every machine.
"""

from __future__ import annotations

import numpy as np

from clustering_protocols.algorithms.row_kernels import iter_blocks, nearest_in_block
from clustering_protocols.numerics.kernels import add_in_order, in_c, power
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray


def _memberships(D: FloatArray, smallest: FloatArray, exponent: float) -> FloatArray:
    """Return memberships μ (k, size) from squared distances D (k, size).

    This is equation 6 of Corcuera Bárcena et al., computed from ratios to the smallest
    distance, so that nothing overflows. A row on h coinciding centroids has membership
    1/h in each.

    exponent: 1/(λ-1).
    """
    is_near = smallest == D
    ratio = np.divide(smallest, D, out=np.ones_like(D), where=~is_near)
    degrees = ratio if exponent == 1.0 else power(ratio, exponent)
    share: FloatArray = degrees / add_in_order(np.zeros(D.shape[1]), degrees)
    return share


@in_c("sums", "weights")
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
    """Add a batch of rows to the sums WS_c and u_c of algorithm 3, in whole units.

    X, offset, inverse, V, units: as in
        :func:`~clustering_protocols.algorithms.row_kernels.nearest_sums`.
    fuzzifier: λ > 1.
    sums: float64 (k, F), WS_c; updated in place. Integers below 2^53.
    weights: float64 (k,), u_c = Σ μ^λ; updated in place.
    """
    for _, block, D in iter_blocks(X, offset, inverse, V):
        smallest = nearest_in_block(D, 0.0)[1]
        degrees = _memberships(D, smallest, 1.0 / (fuzzifier - 1.0))
        raised = degrees * degrees if fuzzifier == 2.0 else power(degrees, fuzzifier)
        weights += np.rint(raised * weight_unit).sum(axis=1)
        for f, column in enumerate(block):
            sums[:, f] += np.rint(raised * column * units[f]).sum(axis=1)


@in_c("labels", "memberships", "distances")
def assign(
    X: FloatArray,
    offset: FloatArray,
    inverse: FloatArray,
    V: FloatArray,
    exponent: float,
    labels: IntArray,
    memberships: FloatArray,
    distances: FloatArray,
) -> None:
    """Compute the labels and memberships of a batch, and its distances to the centroids.

    X, offset, inverse, V: as in :func:`fuzzy_sums`.
    exponent: 1/(λ-1), or 0 for hard c-means, where memberships are 0 or 1.
    labels: int64 (n,); filled with the numbers of the nearest centroids.
    memberships: float64 (n, k); filled.
    distances: float64 (n, k); filled with squared distances.
    """
    for rows, _, D in iter_blocks(X, offset, inverse, V):
        labels[rows], smallest = nearest_in_block(D, 0.0)
        distances[rows] = D.T
        if exponent > 0.0:
            memberships[rows] = _memberships(D, smallest, exponent).T
        else:
            memberships[rows] = labels[rows, None] == np.arange(len(V))


@in_c("words")
def distance_units(
    X: FloatArray,
    offset: FloatArray,
    inverse: FloatArray,
    V: FloatArray,
    unit: float,
    positions: IntArray,
    words: WordArray,
) -> None:
    """Write the squared distances of a batch into ``words``, as ring elements.

    X, offset, inverse, V: as in :func:`fuzzy_sums`.
    unit: distances are multiplied by this and rounded.
    positions: int64 (n,); the position of each row of the batch in the secret order.
    words: uint64 (n_rows, k); filled at these positions with at most 2^63, even if a
        distance is NaN.
    """
    for rows, _, D in iter_blocks(X, offset, inverse, V):
        units = np.fmin(np.rint(D.T * unit), 2.0**63)
        words[positions[rows]] = units.astype(np.uint64)
