"""Squared distances, against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from clustering_protocols.algorithms.row_kernels import squared_distances


@pytest.mark.parametrize(("n", "k", "width"), [(1, 1, 1), (7, 3, 2), (513, 9, 33)])
def test_squared_distances_are_scipys_to_the_bit(n: int, k: int, width: int) -> None:
    rng = np.random.default_rng(n)
    A, B = (
        rng.normal(size=(rows, width)) * 10.0 ** rng.uniform(-3, 3, size=width)
        for rows in (n, k)
    )
    for first, second in ((A, B), (A[:, ::-1], np.asfortranarray(B)), (A, A)):
        expected = cdist(first, second, "sqeuclidean")
        np.testing.assert_array_equal(squared_distances(first, second), expected)
