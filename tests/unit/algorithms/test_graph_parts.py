"""Spectral clustering where the graph of neighbours has more parts than clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial.distance import cdist, pdist

from clustering_protocols.algorithms import graph_parts, neighbors
from clustering_protocols.algorithms.kmeans import draw_starts, kmeans
from clustering_protocols.algorithms.neighbors import (
    DistanceNeighbors,
    Neighbors,
    RowNeighbors,
)
from clustering_protocols.algorithms.spectral import (
    embed_neighbors,
    neighbor_graph,
    spectral_embedding,
)
from clustering_protocols.numerics.scores import adjusted_rand
from tests.unit.algorithms.shapes import lumps


def labels_of(Z: Any, k: int) -> Any:
    return kmeans(Z, draw_starts(Z, k, 10, np.random.default_rng(0)), 300).labels


def cluster(X: Any, k: int) -> Any:
    return labels_of(spectral_embedding(X, k, np.random.default_rng(0)), k)


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
    assert adjusted_rand(labels, labels_of(by_distances, k)) == 1.0


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
            joined = graph_parts.join(part, most, found)
            assert np.array_equal(np.unique(joined), np.arange(most))
            assert adjusted_rand(expected, joined) == 1.0


def one_joined(now: Any, part: Any, edges: Any) -> Any:
    """Return part numbers after one step along a tree between the parts as given."""

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
            found = way.outside(inside)
            assert inside[found.inside]
            assert found.row == expected
            assert found.distance == pytest.approx(between.min(), rel=1e-6)
