"""k-means equals scikit-learn's, with the same bits for any blocks and threads."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_iris, load_wine, make_blobs

from clustering_protocols.algorithms import kmeans as of_kmeans, lloyd
from clustering_protocols.algorithms.kmeans import (
    draw_starts,
    kmeans,
    nearest_centroids,
)
from clustering_protocols.algorithms.row_kernels import squared_distances
from clustering_protocols.numerics import row_blocks
from clustering_protocols.numerics.blocks import ONE_THREAD, LocalEngine
from clustering_protocols.numerics.row_blocks import ArrayRows

BLOBS = make_blobs(3000, 7, centers=9, cluster_std=3.0, random_state=0)[0]
SETS = {
    "iris": (load_iris().data, 3),
    "wine": (load_wine().data, 3),
    "digits": (load_digits().data, 10),
    "blobs": (BLOBS, 9),
}


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def theirs(X: Any, starts: Any, max_iter: int = 300) -> KMeans:
    return min(
        (
            KMeans(len(rows), init=X[rows], n_init=1, tol=0, max_iter=max_iter).fit(X)
            for rows in starts
        ),
        key=lambda run: run.inertia_,
    )


@pytest.fixture
def in_small_blocks(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that sets the rows of a block, and makes threads share any work."""

    def said(n_rows: int, width: int) -> None:
        monkeypatch.setattr(lloyd, "WORTH_A_THREAD", 0)
        monkeypatch.setattr(row_blocks, "BLOCK_ITEMS", n_rows * width)

    return said


@pytest.mark.parametrize(
    ("name", "n_init", "max_iter"),
    [*((name, 5, 300) for name in SETS), *(("blobs", 1, n) for n in (1, 2, 3))],
)
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_k_means_equals_scikit_learn_from_the_same_rows(
    name: str, n_init: int, max_iter: int
) -> None:
    X, k = SETS[name]
    starts = draw_starts(X, k, n_init, rng())
    ours, best = kmeans(X, starts, max_iter), theirs(X, starts, max_iter)
    assert np.array_equal(ours.labels, best.labels_)
    assert ours.inertia == pytest.approx(best.inertia_, rel=1e-12)
    assert ours.n_iter == best.n_iter_
    assert ours.converged == (ours.n_iter < max_iter)
    np.testing.assert_allclose(
        ours.centroids, best.cluster_centers_, rtol=1e-12, atol=1e-12 * np.ptp(X)
    )


@given(st.integers(0, 2**32 - 1))
def test_sums_do_not_depend_on_the_order_of_rows(seed: int) -> None:
    X = rng(seed).normal(size=(300, 3)) * 10.0 ** rng(seed).integers(-9, 9, size=3)
    order = rng(seed).permutation(len(X))
    place = np.empty_like(order)
    place[order] = np.arange(len(X))
    units = lloyd.ScaledRows.scale(ArrayRows(X), ONE_THREAD, 4)
    moved = lloyd.ScaledRows(
        source=ArrayRows(X[order]), units=units.units, engine=ONE_THREAD
    )
    V = units.take(np.arange(4))
    here, there = units.sum_by_nearest(V), moved.sum_by_nearest(V)
    assert np.array_equal(here[0], there[0])
    assert np.array_equal(here[1], there[1])
    assert here[2] == there[2]


@pytest.mark.parametrize("far", [1.0, 1e6, 1e12, 1e100])
def test_sums_are_exact_to_rounding_beside_a_value_far_out(far: float) -> None:
    X = rng(3).normal(loc=5.0, size=(5000, 2))
    X[17, 0] = far
    rows = lloyd.ScaledRows.scale(ArrayRows(X), ONE_THREAD, 1)
    sums, counts, inertia = rows.sum_by_nearest(np.zeros((1, 2)))
    assert counts.tolist() == [5000]
    for f in range(2):
        terms = [Fraction(x) - Fraction(rows.units.offset[f]) for x in X[:, f].tolist()]
        error = abs(
            Fraction(int(sums[0, f])) / Fraction(rows.units.of_sums[f]) - sum(terms)
        )
        assert error <= sum(map(abs, terms)) * Fraction(1, 2**48)
        assert abs(int(sums[0, f])) < 2**62
    expected = np.square(X - rows.units.offset).sum()
    assert float(inertia) == pytest.approx(expected, rel=1e-12)


def test_inertia_is_precise_for_tight_distant_groups() -> None:
    X = np.repeat([[0.0, 0.0], [1e6, 1e6]], 2000, axis=0)
    X += 1e-3 * rng(1).normal(size=X.shape)
    found = kmeans(X, np.array([[0, 2000]]), 300)
    centred = np.concatenate([X[:2000] - X[:2000].mean(0), X[2000:] - X[2000:].mean(0)])
    assert found.inertia == pytest.approx(float(np.square(centred).sum()), rel=1e-6)


@pytest.mark.parametrize("scale", [1e-320, 1e-160, 1e-100, 1e100])
def test_very_small_and_very_large_rows_are_clustered(scale: float) -> None:
    X = np.repeat([[0.0], [1.0], [3.0]], 5, axis=0) * scale
    found = kmeans(X, np.array([[0, 5, 10]]), 300)
    if scale**2 > 0:  # else squares are zero, and every cluster is as near
        assert found.labels.tolist() == [0] * 5 + [1] * 5 + [2] * 5
    assert np.isfinite(found.centroids).all()
    assert found.inertia == 0.0


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 150, 299])
def test_what_is_no_finite_number_is_refused(
    in_small_blocks: Any, wrong: float, place: int
) -> None:
    X = BLOBS[:300].copy()
    X[place, 3] = wrong
    in_small_blocks(7, X.shape[1])
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="NaN or"):
        kmeans(X, np.array([[1, 2]]), 10, LocalEngine(2))


@pytest.mark.parametrize("n_rows", [2, 1000])
def test_an_empty_cluster_is_refilled_as_in_scikit_learn(
    in_small_blocks: Any, n_rows: int
) -> None:
    X = np.vstack([BLOBS[:400], BLOBS[:1], BLOBS[:1] + 1000.0])
    starts = np.array([[0, 400, 1]])  # the first two are equal: the second stays empty
    other = KMeans(3, init=X[starts[0]], n_init=1, tol=0).fit(X)
    in_small_blocks(n_rows, X.shape[1])
    found = kmeans(X, starts, 300, LocalEngine(2))
    assert np.array_equal(found.labels, other.labels_)
    assert found.inertia == pytest.approx(other.inertia_, rel=1e-12)


def test_more_clusters_than_different_rows_leave_some_empty() -> None:
    X = np.repeat([[0.0], [1.0]], 5, axis=0)
    found = kmeans(X, np.array([[0, 1, 5]]), 300)
    assert found.inertia == 0.0
    assert found.converged
    assert found.labels.tolist() == [0] * 5 + [2] * 5


def test_the_nearest_centroid_of_an_exact_tie_is_the_lowest() -> None:
    centroids = np.array([[1.0], [-1.0], [1.0]])
    assert nearest_centroids(np.array([[0.0], [2.0]]), centroids).tolist() == [0, 0]
    X = np.array([[-1.0], [1.0], [0.0]])
    assert kmeans(X, np.array([[1, 0]]), 1).labels.tolist() == [1, 0, 0]


def test_starts_race_on_some_of_many_rows(
    monkeypatch: pytest.MonkeyPatch, in_small_blocks: Any
) -> None:
    X, _ = make_blobs(4000, 5, centers=20, cluster_std=3.0, random_state=1)
    starts = draw_starts(X, 6, 8, rng(2))
    full = kmeans(X, starts, 300)
    sizes = []

    def sized(rows: lloyd.ScaledRows, *more: Any) -> lloyd.LloydRun:
        sizes.append(rows.n_rows)
        return lloyd.lloyd(rows, *more)

    monkeypatch.setattr(of_kmeans, "RACE_ROWS", 1000)
    monkeypatch.setattr(of_kmeans, "lloyd", sized)
    raced = kmeans(X, starts, 300)
    assert sizes == [1000] * 8 + [4000]
    assert raced.converged
    assert raced.inertia == pytest.approx(full.inertia, rel=0.005)
    in_small_blocks(100, X.shape[1])
    again = kmeans(ArrayRows(X), starts, 300, LocalEngine(2))
    assert np.array_equal(again.labels, raced.labels)
    assert again.centroids.tobytes() == raced.centroids.tobytes()


@pytest.mark.parametrize("seed", range(5))
def test_a_rotation_does_not_change_how_ties_are_resolved(seed: int) -> None:
    """Rows of zeros and ones have many ties, which a rotation rounds differently."""
    X = rng(seed).integers(0, 2, (400, 6)).astype(float)
    Q, _ = np.linalg.qr(rng(seed + 100).normal(size=(6, 6)))
    starts = draw_starts(X, 5, 10, rng(seed))
    here, turned = kmeans(X, starts, 300), kmeans(X @ Q, starts, 300)
    assert np.array_equal(here.labels, turned.labels)
    assert here.n_iter == turned.n_iter
    assert turned.inertia == pytest.approx(here.inertia)


def test_rounding_alone_does_not_refill_an_empty_cluster() -> None:
    Q, _ = np.linalg.qr(rng(1).normal(size=(4, 4)))
    places = np.hstack([np.eye(2), np.eye(2)])[[0, 1] * 50]
    noise = 1e-15 * rng(2).normal(size=(100, 4))
    found = kmeans(places @ Q + noise, np.array([[0, 1, 2, 3]]), 300)
    assert found.converged
    assert found.n_iter == 2
    assert sorted(np.bincount(found.labels)) == [50, 50]


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
