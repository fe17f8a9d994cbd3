"""Gap, stability and prediction strength against numpy, scikit-learn and definitions."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_blobs
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from clustering_protocols import simulation
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.quality.runs import (
    Gap,
    fast_adjusted_rand,
    favours_one_cluster,
    gap_statistics,
    prediction_strength,
    smallest_confirmed_proportion,
    stability,
)
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.terms.sections import Evaluation
from clustering_protocols.terms.terms import Layout

IRIS = load_iris().data
SEEDS = range(20)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Few rows: threads would wait for each other more than they work."""
    with threadpool_limits(limits=1):
        yield


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def pooled_gap(X: FloatArray, k: int, seed: int) -> tuple[float, float]:
    """Tibshirani's variant b in numpy and scikit-learn: gap and s_k of 30 references."""

    def log_inertia(rows: FloatArray) -> float:
        return float(np.log(KMeans(k, n_init=5, random_state=seed).fit(rows).inertia_))

    centred = X - X.mean(axis=0)
    _, _, V = np.linalg.svd(centred, full_matrices=False)
    turned = centred @ V.T
    draw = np.random.default_rng(seed)
    logs = [
        log_inertia(draw.uniform(turned.min(axis=0), turned.max(axis=0), X.shape) @ V)
        for _ in range(30)
    ]
    return float(np.mean(logs) - log_inertia(X)), float(np.std(logs))


def test_the_gap_is_that_of_plain_numpy_but_for_the_draw() -> None:
    for found in gap_statistics(IRIS.copy(), [2, 3], rng()):
        gap, spread = pooled_gap(IRIS, found.n_clusters, seed=1)
        # the mean of 10 references differs from that of 30 by about a third of a spread
        assert abs(found.gap - gap) < 1.5 * spread
        assert 0.3 < found.error / spread < 2.5


def test_one_cluster_is_always_told_and_rows_stay_as_they_are() -> None:
    X = IRIS.copy()
    found = gap_statistics(X, [3], rng())
    assert [each.n_clusters for each in found] == [1, 3]
    np.testing.assert_allclose(X, IRIS, rtol=1e-12)
    assert found == gap_statistics(X.copy(), [3], rng())


@pytest.mark.parametrize("kind", ["uniform", "normal", "correlated"])
@pytest.mark.quick(1)
def test_rows_without_structure_are_one_cluster(kind: str) -> None:
    said = []
    for seed in SEEDS:
        draw = rng(seed)
        X = (
            draw.uniform(size=(200, 3))
            if kind == "uniform"
            else draw.normal(size=(200, 3))
        )
        X = X @ draw.normal(size=(3, 3)) if kind == "correlated" else X
        said.append(
            favours_one_cluster(runs_of(gap_statistics(X, [2], rng(100 + seed))))
        )
    assert said.count(True) >= 19


def runs_of(found: list[Gap]) -> list[Figures]:
    return [
        Figures(
            n_clusters=each.n_clusters,
            gap=each.gap,
            gap_error=each.error,
            gap_of_one=found[0].gap,
        )
        for each in found[1:]
    ]


def test_one_cluster_is_compared_with_every_other_number() -> None:
    def said(*values: float, stability: float | None = None) -> bool | None:
        return favours_one_cluster(
            [
                Figures(
                    n_clusters=k,
                    gap=value,
                    gap_error=0.1,
                    gap_of_one=0.5,
                    stability=stability,
                )
                for k, value in enumerate(values, 2)
            ]
        )

    assert said(0.59) is True
    assert said(0.61) is False
    assert said(0.3, 0.4, 1.6) is False, "seven clusters whose pairs are none"
    assert said(0.3, 0.4, stability=0.94) is True
    assert said(0.3, 0.4, stability=0.96) is False
    assert said() is None


@pytest.mark.parametrize("k", [4, 7])
def test_far_clusters_are_not_one_whatever_their_pairs_say(k: int) -> None:
    turns = np.linspace(0, 2 * np.pi, k, endpoint=False)
    centres = 5 * np.column_stack([np.cos(turns), np.sin(turns), turns])
    X, _ = make_blobs(210, centers=centres, cluster_std=0.5, random_state=1)
    found = gap_statistics((X - X.mean(axis=0)) / X.std(axis=0), range(2, 9), rng())
    assert favours_one_cluster(runs_of(found)) is False


@pytest.mark.parametrize(
    ("X", "numbers"),
    [
        (np.ones((10, 2)), []),
        (np.repeat(np.eye(3), 5, axis=0), [1, 2]),
        (np.eye(2), [1]),
    ],
    ids=["equal rows", "three rows", "two rows"],
)
def test_numbers_that_leave_no_inertia_are_left_out(
    X: FloatArray, numbers: list[int]
) -> None:
    found = gap_statistics(X.copy(), [2, 3, 4], rng())
    assert [each.n_clusters for each in found] == numbers


def test_stability_is_the_mean_over_pairs_of_halves() -> None:
    """In scikit-learn, over halves of another draw."""
    draw, labels = rng(7), []
    for _ in range(20):
        half = IRIS[draw.permutation(150)[:75]]
        fitted = KMeans(3, n_init=5, random_state=0).fit(half)
        labels.append(fitted.predict(IRIS))
    scores = [adjusted_rand_score(*pair) for pair in combinations(labels, 2)]
    found = stability(IRIS, 3, rng())
    assert found == pytest.approx(np.mean(scores), abs=0.1)
    assert found == stability(IRIS, 3, rng())


@pytest.mark.parametrize("n_rows", [1, 2, 150, 400_000])
@pytest.mark.parametrize("k", [1, 2, 20])
def test_the_agreement_of_two_labellings_is_scikit_learns(n_rows: int, k: int) -> None:
    one, other = rng(n_rows).integers(k, size=(2, n_rows))
    near = np.where(one == 0, other, one)
    for pair in ((one, other), (one, near), (one, k - 1 - one), (one, 0 * one)):
        expected = adjusted_rand_score(*pair)
        assert fast_adjusted_rand(*pair, k) == pytest.approx(expected, abs=1e-12)


def pair_by_pair(own: IntArray, predicted: IntArray) -> float:
    found = []
    for cluster in np.unique(own):
        pairs = list(combinations(np.flatnonzero(own == cluster), 2))
        if pairs:
            found.append(np.mean([predicted[i] == predicted[j] for i, j in pairs]))
    return float(min(found, default=1.0))


@pytest.mark.parametrize("seed", range(5))
def test_the_strength_is_that_of_all_pairs(seed: int) -> None:
    draw = rng(seed)
    own, predicted = draw.integers(4, size=40), draw.integers(3, size=40)
    assert smallest_confirmed_proportion(own, predicted) == pytest.approx(
        pair_by_pair(own, predicted)
    )


BLOBS = np.repeat(8 * np.eye(3, 4), 60, axis=0) + rng(1).normal(size=(180, 4))


def test_the_largest_predicted_number_is_right() -> None:
    found = {k: prediction_strength(BLOBS, k, rng()) or 0.0 for k in range(2, 7)}
    assert max(k for k, value in found.items() if value > 0.8) == 3
    assert found[3] > 0.99


@pytest.mark.parametrize("figure", [stability, prediction_strength])
@pytest.mark.parametrize(
    ("X", "k"),
    [(IRIS, 1), (np.eye(6), 3), (np.ones((40, 2)), 2)],
    ids=["one cluster", "few rows", "equal rows"],
)
def test_what_cannot_differ_has_no_figure(figure: Any, X: FloatArray, k: int) -> None:
    assert figure(X, k, rng()) is None


def test_what_does_not_cluster_rows_by_k_means_tells_none_of_it() -> None:
    layout, runs = Layout.lattice(2, 2), Evaluation(n_clusters=(2, 3))
    data = simulation.split(IRIS, layout, seed=0).data
    for algorithm, evaluation in (("spectral", runs), ("kmeans", None)):
        params = DataCollaboration(n_clusters=3, algorithm=algorithm)
        run = simulation.run(params, layout, data, 0, evaluation=evaluation)
        for figures in run.outcomes["r1c1"].figures:
            assert figures.gap is figures.stability is None
