"""Starts by k-means‖: as good as k-means++'s."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest
from sklearn.datasets import make_blobs

from clustering_protocols.algorithms import oversampling
from clustering_protocols.algorithms.kmeans import draw_starts, kmeans
from clustering_protocols.common import limits

X, CLASSES = make_blobs(6000, 5, centers=12, cluster_std=0.7, random_state=4)
KEY = np.array([3, 2**63 + 5], dtype=np.uint64)


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MANY_ROWS", 100)


def drawn(seed: int, n_init: int = 1) -> Any:
    return draw_starts(X, 12, n_init, np.random.default_rng(seed))


def test_other_seeds_give_other_rows_and_rows_of_a_start_differ() -> None:
    starts = drawn(0, 5)
    assert starts.shape == (5, 12)
    assert starts.dtype == np.int64
    assert all(len(np.unique(X[rows], axis=0)) == 12 for rows in starts)
    assert len({tuple(rows) for rows in starts.tolist()}) == 5
    assert not np.array_equal(drawn(1, 5), starts)


def test_spans_do_not_change_the_drawn_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = drawn(1, 3)
    monkeypatch.setattr(oversampling, "_SPAN_ROWS", 1001)
    assert np.array_equal(drawn(1, 3), whole)


def test_starts_are_as_good_as_those_of_k_means_plus_plus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def potential(starts: Any) -> float:
        return float(np.mean([kmeans(X, rows[None], 1).inertia for rows in starts]))

    ours = np.mean([potential(drawn(seed, 3)) for seed in range(5)])
    monkeypatch.setattr(limits, "MANY_ROWS", len(X))
    assert ours <= 1.1 * np.mean([potential(drawn(seed, 3)) for seed in range(5)])


@pytest.mark.parametrize("n_different", [1, 3, 11])
def test_fewer_different_rows_than_clusters_are_no_trouble(
    monkeypatch: pytest.MonkeyPatch, n_different: int
) -> None:
    few = X[np.arange(2000) % n_different]
    monkeypatch.setattr(f"{__name__}.X", few)
    found = kmeans(few, drawn(0, 2), 300)
    assert found.inertia == pytest.approx(0.0, abs=1e-20)


def test_wide_rows_are_not_held_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = drawn(1)
    monkeypatch.setattr(limits, "MANY_ROWS", len(X))
    assert not np.array_equal(drawn(1), expected)
    monkeypatch.setattr(limits, "MANY_NUMBERS", X.size - 1)
    assert np.array_equal(drawn(1), expected)


@pytest.mark.parametrize(("begin", "end"), [(0, 1), (5, 9), (4, 4096), (999, 1000)])
def test_a_row_s_number_follows_from_key_pass_and_row_alone(
    begin: int, end: int
) -> None:
    whole = oversampling.draw_uniform(KEY, 3, slice(0, 5000))
    assert np.array_equal(
        oversampling.draw_uniform(KEY, 3, slice(begin, end)), whole[begin:end]
    )


def test_numbers_are_uniform_and_passes_have_nothing_in_common() -> None:
    one, other = (
        oversampling.draw_uniform(KEY, number, slice(0, 20_000)) for number in (0, 1)
    )
    assert kstest(one, "uniform").pvalue > 0.001
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.03
    assert not np.isin(one, other).any()
