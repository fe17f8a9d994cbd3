"""Spectral clustering equals scikit-learn's, also if a graph has too many components."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial.distance import cdist, pdist
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_digits, load_wine, make_blobs, make_moons
from sklearn.neighbors import kneighbors_graph

from clustering_protocols.algorithms import neighbors
from clustering_protocols.algorithms.kmeans import draw_starts, kmeans
from clustering_protocols.algorithms.neighbors import (
    DistanceNeighbors,
    Neighbors,
    RowNeighbors,
)
from clustering_protocols.algorithms.spectral import (
    build_affinity,
    embed_neighbors,
    join_components,
    spectral_embedding,
)
from clustering_protocols.numerics.scores import adjusted_rand


def cluster(X: Any, k: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return labels_of(spectral_embedding(X, k, rng), k, rng)


def labels_of(Z: Any, k: int, rng: np.random.Generator) -> Any:
    return kmeans(Z, draw_starts(Z, k, 10, rng), 300).labels


def neighbor_graph(X: Any, count: int) -> Any:
    return build_affinity(RowNeighbors(X).nearest_rows(count))


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


def test_rows_without_neighbours_and_tiny_data_do_not_fail() -> None:
    assert spectral_embedding(np.zeros((1, 2)), 1, np.random.default_rng(0)).shape == (
        1,
        1,
    )
    far = np.vstack([np.random.default_rng(0).normal(size=(30, 2)), [[1e6, 1e6]]])
    assert np.isfinite(spectral_embedding(far, 2, np.random.default_rng(0))).all()


def lumps(width: int) -> tuple[Any, Any]:
    """Return rows (655, width) and the numbers of their three groups.

    Groups lie far apart; one of them falls into four lumps with gaps between them, each
    of which is a part of the graph of ten nearest neighbours by itself.
    """
    rng = np.random.default_rng(0)
    sizes, groups = (200, 180, 160, 60, 40, 15), (0, 1, 2, 2, 2, 2)
    middles = np.zeros((6, width))
    middles[1, 0], middles[2:, 1] = 90.0, [90.0, 98.0, 106.0, 114.0]
    lump = np.repeat(np.arange(6), sizes)
    X = middles[lump] + 0.3 * rng.normal(size=(len(lump), width))
    order = rng.permutation(len(X))  # parties hold rows of every lump
    return X[order], np.asarray(groups)[lump[order]]


@pytest.mark.parametrize("width", [2, 30])  # by a tree, and without
@pytest.mark.quick(1)
def test_a_group_in_lumps_is_one_cluster(width: int) -> None:
    X, y = lumps(width)
    count, _ = connected_components(neighbor_graph(X, 10))
    assert count == 6
    assert adjusted_rand(y, cluster(X, 3)) == 1.0


def test_far_cliques_take_no_cluster_from_a_group() -> None:
    X, y = lumps(4)
    far = X.max(axis=0) + 500.0 * np.eye(4)[:2]
    some = np.random.default_rng(1).normal(size=(2, 11, 4)) + far[:, None, :]
    labels = cluster(np.vstack([X, *some]), 3)
    assert adjusted_rand(y, labels[: len(y)]) == 1.0


def test_a_broken_ring_stays_a_ring() -> None:
    turns = np.linspace(0.0, 2.0 * np.pi, 600, endpoint=False)
    turns = turns[(turns % 1.5) > 0.3]  # gaps shorter than the way between the rings
    ring = np.column_stack([np.cos(turns), np.sin(turns)])
    X, y = np.vstack([ring, 2.0 * ring]), np.repeat([0, 1], len(ring))
    count, _ = connected_components(neighbor_graph(X, 10))
    assert count > 2
    assert adjusted_rand(y, cluster(X, 2)) == 1.0


@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_labels_depend_on_distances_alone(k: int) -> None:
    X, _ = lumps(4)
    rng = np.random.default_rng(2)
    order = rng.permutation(len(X))
    turned, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    labels = cluster(X, k)
    assert len(np.unique(labels)) == k
    assert adjusted_rand(labels[order], cluster(X[order], k)) == 1.0
    assert adjusted_rand(labels, cluster(X @ turned + 100.0, k)) == 1.0
    known = DistanceNeighbors(pdist(X))
    by_distances = embed_neighbors(known, len(X), k, np.random.default_rng(0))
    assert (
        adjusted_rand(labels, labels_of(by_distances, k, np.random.default_rng(0)))
        == 1.0
    )


def test_thousands_of_parts_take_no_vector_each() -> None:
    X = np.repeat(np.random.default_rng(0).normal(size=(900, 2)), 12, axis=0)
    assert connected_components(neighbor_graph(X, 10))[0] == 900
    labels = cluster(X, 4)
    assert len(np.unique(labels)) == 4


@pytest.mark.parametrize("seed", range(5))
def test_parts_join_whose_separation_costs_most(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = [1, 1, 2, 2, 3, 5, 6, 9, 10, 21]
    X, part = rng.normal(size=(60, 3)), np.repeat(range(10), sizes)
    away = cdist(X, X)
    gaps = [[away[part == a][:, part == b].min() for b in range(10)] for a in range(10)]
    tree = minimum_spanning_tree(np.array(gaps)).tocoo()
    edges = list(zip(tree.row, tree.col, tree.data, strict=True))
    expected = part
    for most in range(9, 0, -1):
        expected = one_joined(expected, part, edges)
        for found in (RowNeighbors(X), DistanceNeighbors(pdist(X))):
            joined = join_components(part, most, found)
            assert np.array_equal(np.unique(joined), np.arange(most))
            assert adjusted_rand(expected, joined) == 1.0


def one_joined(now: Any, part: Any, edges: Any) -> Any:
    def separation(edge: Any) -> float:
        a, b = (np.count_nonzero(now == at(end)) for end in edge[:2])
        return (1 / a + 1 / b) / edge[2] if at(edge[0]) != at(edge[1]) else 0.0

    def at(end: int) -> Any:
        return now[part == end][0]

    first, second, _ = max(edges, key=separation)
    return np.where(now == at(first), at(second), now)


@pytest.mark.parametrize("size", [1, 7, 150])
@pytest.mark.parametrize("far", [0.0, 1e6])
def test_the_nearest_row_outside_is_that_of_all_distances(
    monkeypatch: pytest.MonkeyPatch, size: int, far: float
) -> None:
    monkeypatch.setattr(neighbors, "_TREE_ROWS", 20)
    rng = np.random.default_rng(size)
    for width in (3, 40):
        X = rng.normal(size=(300, width))
        inside = np.zeros(300, dtype=bool)
        inside[rng.choice(300, size, replace=False)] = True
        between = cdist(X[inside], X[~inside])
        expected = np.flatnonzero(~inside)[between.min(axis=0).argmin()]
        ways: list[Neighbors] = [RowNeighbors(X + far), DistanceNeighbors(pdist(X))]
        for way in ways:
            found = way.closest_outside(inside)
            assert inside[found.inside]
            assert found.row == expected
            assert found.distance == pytest.approx(between.min(), rel=1e-6)
