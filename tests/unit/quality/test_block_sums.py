"""Sums of labelled rows against numpy and SciPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from clustering_protocols.quality import block_sums

RNG = np.random.default_rng(5)
X = RNG.normal(size=(1000, 7))
OFFSET, INVERSE = RNG.normal(size=7), RNG.uniform(0.5, 2.0, size=7)
Z = (X - OFFSET) * INVERSE
LABELS = np.append(RNG.integers(0, 3, size=999), 3)  # one cluster of one row
COUNTS = np.bincount(LABELS, minlength=5)  # and one without any
MEANS = RNG.normal(size=(5, 7))


def test_sums_by_label_are_added_row_after_row() -> None:
    expected, found = np.zeros((5, 7)), np.zeros((5, 7))
    np.add.at(expected, LABELS, Z)

    block_sums.add_by_label(X, OFFSET, INVERSE, LABELS, found)

    assert np.array_equal(found, expected)


def test_sums_around_means_are_those_of_all_distances() -> None:
    D = cdist(Z, MEANS)
    own = D[np.arange(1000), LABELS]
    D[np.arange(1000), LABELS] = D[:, 4] = np.inf
    others = D.min(axis=1)
    silhouettes = ((others - own) / np.maximum(own, others))[LABELS != 3]

    found = block_sums.sum_around_means(X, (OFFSET, INVERSE), MEANS, LABELS, COUNTS)

    assert found[:5] == pytest.approx(np.bincount(LABELS, own**2, 5))
    assert found[5:10] == pytest.approx(np.bincount(LABELS, own, 5))
    assert found[10:] == pytest.approx(silhouettes.sum())


@pytest.mark.parametrize("beside", [-1, 5])
@pytest.mark.parametrize(
    "add",
    [
        lambda labels: block_sums.add_by_label(
            X, OFFSET, INVERSE, labels, np.zeros((5, 7))
        ),
        lambda labels: block_sums.sum_around_means(
            X, (OFFSET, INVERSE), MEANS, labels, COUNTS
        ),
    ],
    ids=["by label", "around means"],
)
def test_a_label_of_no_cluster_touches_nothing_else(
    add: Callable[[Any], Any], beside: int
) -> None:
    labels = LABELS.copy()
    labels[500] = beside
    with pytest.raises(IndexError):
        add(labels)
