"""Equal rows are in one cluster, whichever way ties are broken."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from clustering_protocols.algorithms.density import hdbscan
from clustering_protocols.algorithms.hierarchical import hierarchical
from clustering_protocols.algorithms.linkages import Linkage


@pytest.mark.parametrize("linkage", ["average", "complete", "single", "ward"])
def test_more_clusters_than_different_rows_part_no_equal_ones(linkage: Linkage) -> None:
    X = np.repeat(np.random.default_rng(0).normal(size=(9, 3)), [12, *[5] * 8], axis=0)
    labels = hierarchical(pdist(X), 10, linkage)
    assert len(np.unique(np.column_stack([X, labels]), axis=0)) == 9


def test_ties_of_densities_part_no_equal_rows() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 4, size=(200, 3)).astype(float)
        noisy = X + 1e-13 * rng.normal(size=X.shape)  # as an embedding has them
        labels = hdbscan(noisy, 5, 5)
        pairs = np.unique(np.column_stack([X, labels]), axis=0)
        assert len(pairs) == len(np.unique(X, axis=0))
