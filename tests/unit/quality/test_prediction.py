"""Prediction strength, against its definition pair by pair and on sets whose k is known."""

from itertools import combinations

import numpy as np
import pytest

from clustering_protocols.quality.runs import prediction_strength, smallest_share
from clustering_protocols.records.arrays import FloatArray, IntArray


def pair_by_pair(own: IntArray, foretold: IntArray) -> float:
    found = []
    for cluster in np.unique(own):
        pairs = list(combinations(np.flatnonzero(own == cluster), 2))
        if pairs:
            found.append(np.mean([foretold[i] == foretold[j] for i, j in pairs]))
    return float(min(found, default=1.0))


@pytest.mark.parametrize("seed", range(5))
def test_the_strength_is_that_of_all_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    own, foretold = rng.integers(4, size=40), rng.integers(3, size=40)
    assert smallest_share(own, foretold) == pytest.approx(pair_by_pair(own, foretold))


def blobs(k: int) -> FloatArray:
    rng = np.random.default_rng(1)
    return np.repeat(8 * np.eye(k, 4), 60, axis=0) + rng.normal(size=(60 * k, 4))


def test_the_largest_foretold_number_is_right() -> None:
    X = blobs(3)
    found = {
        k: prediction_strength(X, k, np.random.default_rng(0)) or 0.0
        for k in range(2, 7)
    }
    assert max(k for k, value in found.items() if value > 0.8) == 3
    assert found[3] > 0.99


def test_what_cannot_differ_has_no_strength() -> None:
    rng = np.random.default_rng(0)
    assert prediction_strength(blobs(3), 1, rng) is None
    assert prediction_strength(np.zeros((40, 2)), 2, rng) is None
    assert prediction_strength(np.zeros((4, 2)), 3, rng) is None
