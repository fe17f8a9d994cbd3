"""Which rows follow exactly from sums over clusters of rows: those of leverage 1."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from clustering_protocols.records.arrays import FloatArray, IntArray

_NONE: Final = 1e-9  # of the largest singular value
_ONE: Final = 1e-8


def n_of_leverage_one(labels: NDArray[np.int32], sizes: IntArray) -> int:
    """Return how many rows have leverage 1 in the span of all memberships.

    labels: int32 (t, d); the cluster of each class of rows in each partition; -1 for
        none.
    sizes: int64 (d,); rows of each class; they have one direction together, and no
        leverage of 1 but where they are one.
    """
    # not above: the contract is imported wherever a session is only shown
    from threadpoolctl import threadpool_limits

    A = _memberships(labels) * np.sqrt(sizes)
    if not A.size:
        return 0
    with threadpool_limits(1, "blas"):  # small: threads would only wait for each other
        _, values, directions = np.linalg.svd(A, full_matrices=False)
    spanning = directions[values > _NONE * values[0]]
    leverage = np.square(spanning).sum(axis=0)
    return int(np.count_nonzero((sizes == 1) & (leverage > 1.0 - _ONE)))


def _memberships(labels: NDArray[np.int32]) -> FloatArray:
    """Return different rows of zeros and ones (s, d) that span all memberships."""
    found = [labels == cluster for cluster in range(int(labels.max(initial=-1)) + 1)]
    rows = np.concatenate([*found, np.empty((0, labels.shape[1]), bool)])
    return np.unique(rows, axis=0).astype(np.float64)
