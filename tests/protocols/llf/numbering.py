"""Numbers of clusters: from those that the engine gives to those of a reference."""

from __future__ import annotations

import numpy as np

from clustering_protocols.records.arrays import IntArray


def numbers_of(labels: IntArray, reference: IntArray, n_clusters: int) -> IntArray:
    """Return the reference's number of each cluster (k,) of the same partition.

    Fails where a cluster of one is not a cluster of the other. Clusters without rows
    take the numbers that are left.
    """
    assert labels.shape == reference.shape
    assert np.array_equal(labels < 0, reference < 0)
    pairs = {(int(a), int(b)) for a, b in zip(labels, reference, strict=True) if a >= 0}
    numbers = dict(pairs)
    assert len(numbers) == len(pairs) == len(set(numbers.values())), "other clusters"
    left = iter(sorted(set(range(n_clusters)) - set(numbers.values())))
    return np.array(
        [numbers[c] if c in numbers else next(left) for c in range(n_clusters)]
    )
