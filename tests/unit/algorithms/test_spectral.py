"""Spectral embedding and k-means beside scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_digits, load_wine, make_blobs, make_moons
from sklearn.neighbors import kneighbors_graph

from clustering_protocols.algorithms.kmeans import draw_starts, kmeans
from clustering_protocols.algorithms.spectral import neighbor_graph, spectral_embedding
from clustering_protocols.numerics.scores import adjusted_rand


def cluster(X: Any, k: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    Z = spectral_embedding(X, k, rng)
    return kmeans(Z, draw_starts(Z, k, 10, rng), 300).labels


def theirs(X: Any, k: int) -> Any:
    return SpectralClustering(
        k, affinity="nearest_neighbors", n_neighbors=10, random_state=0
    ).fit_predict(X)


SETS = {
    "wine": (load_wine().data, 3),
    "digits": (load_digits().data, 10),  # wide: no tree
    "moons": (make_moons(600, noise=0.05, random_state=0)[0], 2),
    "blobs in pieces": (make_blobs(900, 5, centers=6, random_state=1)[0], 6),
}


@pytest.mark.parametrize("name", ["wine", "digits"])
def test_the_graph_is_that_of_scikit_learn(name: str) -> None:
    X, _ = SETS[name]
    directed = kneighbors_graph(X, 10, include_self=True)
    expected = 0.5 * (directed + directed.T)
    differing = abs(neighbor_graph(X, 10) - expected)
    # equal distances may choose another neighbour
    assert differing.sum() <= 0.001 * expected.sum()


@pytest.mark.parametrize("name", SETS)
@pytest.mark.filterwarnings("ignore:Graph is not fully connected")
def test_labels_agree_with_scikit_learn(name: str) -> None:
    X, k = SETS[name]
    assert adjusted_rand(theirs(X, k), cluster(X, k)) >= 0.99


def test_more_components_than_clusters_and_fewer_are_both_right() -> None:
    X, y = make_blobs(900, 5, centers=6, cluster_std=0.3, random_state=1)
    count, _ = connected_components(neighbor_graph(X, 10))
    assert count == 6
    assert adjusted_rand(y, cluster(X, 6)) == 1.0
    merged = cluster(X, 4)
    assert len(np.unique(merged)) == 4
    for label in range(6):  # a component is never cut
        assert len(np.unique(merged[y == label])) == 1
    finer = cluster(X, 8)
    for label in np.unique(finer):  # no cluster reaches over two components
        assert len(np.unique(y[finer == label])) == 1


def test_the_embedding_is_the_same_bits_from_the_same_generator() -> None:
    X, k = SETS["moons"]
    first, second = (spectral_embedding(X, k, np.random.default_rng(5)) for _ in "ab")
    assert first.tobytes() == second.tobytes()


def test_rows_without_neighbours_and_tiny_data_do_not_fail() -> None:
    assert spectral_embedding(np.zeros((1, 2)), 1, np.random.default_rng(0)).shape == (
        1,
        1,
    )
    far = np.vstack([np.random.default_rng(0).normal(size=(30, 2)), [[1e6, 1e6]]])
    assert np.isfinite(spectral_embedding(far, 2, np.random.default_rng(0))).all()
