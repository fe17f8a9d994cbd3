"""Algorithms on condensed distances beside scikit-learn's, scipy's and brute force."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.cluster import AgglomerativeClustering
from sklearn.datasets import load_digits, load_iris, make_blobs

from clustering_protocols.algorithms import (
    condensed_distances,
    dbscan,
    embedding,
    fuzzy_cmeans,
    hierarchical,
    kmeans,
    kmedoids,
    nmf,
)
from clustering_protocols.algorithms.dbscan import hdbscan
from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.numerics.scores import adjusted_rand

X, CLASSES = make_blobs(200, 5, centers=6, cluster_std=2.0, random_state=0)
D = pdist(X)


@given(st.integers(1, 40))
def test_condensed_and_square_are_the_same(n: int) -> None:
    away = np.random.default_rng(n).random(n * (n - 1) // 2)
    full = squareform(away, checks=False) if n > 1 else np.zeros((1, 1))
    assert condensed_distances.count_rows(away) == n
    row = np.empty(n)
    for i in range(n):
        condensed_distances.read_row(away, n, i, row)
        assert np.array_equal(row, full[i])


@pytest.mark.parametrize("count", [1, 7, 200])
def test_nearest_rows_are_those_of_a_stable_sort(count: int) -> None:
    coarse = np.round(D)  # many equal distances
    full = squareform(coarse)
    np.fill_diagonal(full, -1.0)
    expected = np.argsort(full, axis=1, kind="stable")[:, :count]
    rows, away = condensed_distances.nearest_rows(coarse, count)
    assert np.array_equal(rows, expected)
    assert np.array_equal(
        away, np.maximum(np.take_along_axis(full, expected, axis=1), 0)
    )


def test_the_knee_separates_groups_from_strays() -> None:
    groups, truth = make_blobs(
        300, 2, centers=[[0, 0], [12, 0], [0, 12]], random_state=0
    )
    strays = np.random.default_rng(0).uniform(-12, 24, size=(15, 2))
    Z = np.vstack([groups, strays])
    eps = dbscan.choose_eps(Z, 5)
    labels = dbscan.dbscan(Z, eps, 5, most_pairs=315 * 315)
    assert adjusted_rand(truth, labels[:300]) > 0.95
    assert np.mean(labels[300:] == -1) > 0.6
    assert not (pdist(Z) == eps).any()


def test_more_pairs_of_neighbours_than_fit_are_refused_with_a_remedy() -> None:
    with pytest.raises(ProtocolFailed, match="smaller eps, or a larger memory_limit"):
        dbscan.dbscan(X, 1e3, 5, most_pairs=39_999)
    assert not dbscan.dbscan(X, 1e3, 5, most_pairs=40_000).any()


def test_the_knee_of_equal_distances_joins_them() -> None:
    even = np.eye(10)
    eps = dbscan.choose_eps(even, 5)
    assert dbscan.dbscan(even, eps, 5, most_pairs=100).tolist() == [0] * 10


@pytest.mark.parametrize("linkage", ["single", "complete", "average", "ward"])
@pytest.mark.parametrize("k", [1, 2, 6, 200])
def test_hierarchical_labels_are_those_of_scikit_learn(linkage: Any, k: int) -> None:
    theirs = AgglomerativeClustering(k, linkage=linkage).fit_predict(X)
    ours = hierarchical.cluster_hierarchically(D.copy(), k, linkage)
    assert adjusted_rand(theirs, ours) == 1.0
    _, first = np.unique(ours, return_index=True)
    assert len(first) == k
    assert (np.diff(first) > 0).all()  # numbered by their first row


def loss(away: Any, medoids: Any) -> float:
    return float(away[list(medoids)].min(axis=0).sum())


@pytest.mark.parametrize("k", [1, 2, 3])
def test_kmedoids_finds_what_no_swap_improves(k: int) -> None:
    few, _ = make_blobs(25, 2, centers=3, random_state=k)
    away = squareform(pdist(few))
    starts = kmedoids.draw_medoids(25, k, 20, np.random.default_rng(0))
    found = kmedoids.kmedoids(pdist(few), starts, 100)
    best = min(loss(away, medoids) for medoids in combinations(range(25), k))
    assert found.loss == pytest.approx(loss(away, found.medoids))
    assert found.loss == pytest.approx(best)
    assert np.array_equal(found.labels, away[found.medoids].argmin(axis=0))


@pytest.mark.parametrize(
    "rows", [X, load_iris().data, load_digits().data[:300], np.ones((6, 2))]
)
def test_an_embedding_has_the_distances_that_it_was_made_of(rows: Any) -> None:
    Z = embedding.classical_scaling(pdist(rows, "sqeuclidean"), rows.shape[1])
    assert np.abs(pdist(Z) - pdist(rows)).max() <= 1e-7 * max(np.ptp(rows), 1.0)
    assert Z.shape[1] == max(np.linalg.matrix_rank(rows - rows.mean(axis=0)), 1)
    assert np.allclose(Z.mean(axis=0), 0.0)


def reference_fuzzy(rows: Any, centroids: Any, m: float, steps: int) -> Any:
    """The textbook's two formulas, one after the other."""
    for _ in range(steps):
        squared = np.square(rows[:, None] - centroids[None]).sum(axis=2)
        powers = (squared[:, :, None] / squared[:, None, :]) ** (1 / (m - 1))
        u = 1 / powers.sum(axis=2)
        centroids = (u**m).T @ rows / (u**m).sum(axis=0)[:, None]
    return u, centroids


@pytest.mark.parametrize("m", [1.3, 2.0, 3.0])
def test_fuzzy_cmeans_is_the_textbook_iteration(m: float) -> None:
    centre = X + 1e-3 * np.random.default_rng(0).normal(size=X.shape)
    starts = kmeans.draw_starts(X, 6, 1, np.random.default_rng(1))
    begun = X[starts[0]] + 1e-9  # the formulas fail on a centroid that is a row
    u, centroids = reference_fuzzy(centre, begun, m, 400)
    found = fuzzy_cmeans.fuzzy_cmeans(centre, starts, m, 400)
    assert np.allclose(found.memberships, u, atol=1e-5)
    assert np.allclose(found.centroids, centroids, atol=1e-4)
    assert np.allclose(found.memberships.sum(axis=1), 1.0)


@pytest.mark.parametrize("max_iter", [1, 3, 400])
def test_the_objective_is_that_of_the_returned_centroids(max_iter: int) -> None:
    starts = kmeans.draw_starts(X, 4, 3, np.random.default_rng(1), trials=1)
    found = fuzzy_cmeans.fuzzy_cmeans(X, starts, 1.5, max_iter)
    squared = cdist(X, found.centroids, "sqeuclidean")
    objective = float((found.memberships**1.5 * squared).sum())
    assert found.objective == pytest.approx(objective, rel=1e-12)


def test_rows_on_a_centroid_and_extreme_exponents_stay_finite() -> None:
    rows = np.array([[0.0], [0.0], [1e-200], [1e150], [1e150]])
    starts = np.array([[0, 3]])
    for m in (1.01, 10.0):
        found = fuzzy_cmeans.fuzzy_cmeans(rows, starts, m, 50)
        assert np.isfinite(found.memberships).all()
    assert found.labels[0] == found.labels[1] != found.labels[3]


def test_nmf_finds_blocks() -> None:
    rng = np.random.default_rng(0)
    blocks = np.kron(np.eye(3), np.ones((20, 5))) + 0.01 * rng.random((60, 15))
    W = nmf.nmf(blocks, 3, 200, seed=0)
    assert (W >= 0).all()
    assert adjusted_rand(np.repeat([0, 1, 2], 20), W.argmax(axis=1)) == 1.0
    assert np.array_equal(W, nmf.nmf(blocks, 3, 200, seed=0))


@pytest.mark.parametrize("linkage", ["average", "complete", "single", "ward"])
def test_more_clusters_than_different_rows_part_no_equal_ones(linkage: str) -> None:
    X = np.repeat(np.random.default_rng(0).normal(size=(9, 3)), [12, *[5] * 8], axis=0)
    labels = hierarchical.cluster_hierarchically(pdist(X), 10, linkage)
    assert len(np.unique(np.column_stack([X, labels]), axis=0)) == 9


def test_ties_of_densities_part_no_equal_rows() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 4, size=(200, 3)).astype(float)
        noisy = X + 1e-13 * rng.normal(size=X.shape)  # as an embedding has them
        labels = hdbscan(noisy, 5, 5)
        pairs = np.unique(np.column_stack([X, labels]), axis=0)
        assert len(pairs) == len(np.unique(X, axis=0))
