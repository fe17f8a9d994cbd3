"""When new rows count as drifted: limits held against SciPy and against chance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from benchmarks.drift import MOST_FALSE, SHAPES, is_alarmed
from clustering_protocols.numerics.data_source import MatrixSource
from party_sdk.results.drift import (
    ALARM,
    LEAST_OUTSIDE,
    LEAST_SHIFT,
    ColumnMeans,
    compute_outside_probability,
    find_drifted_means,
    find_drifted_ranges,
    find_shifts,
    share_means,
)
from party_sdk.results.trained_rows import measure_variables

ONE = np.ones(1)


@pytest.mark.parametrize(("then", "now"), [(20, 30), (200, 50), (5, 1000)])
def test_rows_outside_are_as_likely_as_exchangeable_ones(then: int, now: int) -> None:
    outside = np.arange(now + 1)
    found = compute_outside_probability(then, now, outside)
    expected = stats.betabinom.sf(outside - 1, now, 2, then - 1)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_many_rows_outside_are_a_drift_and_few_are_not() -> None:
    assert find_drifted_ranges(200, 100, np.array([0, 3, 40]), 6).tolist() == [
        False,
        False,
        True,
    ]
    share = int(LEAST_OUTSIDE * 100_000)
    assert not find_drifted_ranges(100_000, 100_000, np.array([share]), 1).any()


@pytest.mark.parametrize("n", [20, 200, 20_000])
def test_a_mean_drifts_beyond_both_limits(n: int) -> None:
    then = ColumnMeans(400, np.zeros(1), ONE)
    quantile = stats.norm.ppf(1 - ALARM / 20)
    limit = max(LEAST_SHIFT, quantile * np.sqrt(1 / 400 + 1 / n))
    for factor, drifted in ((0.999, False), (1.001, True)):
        now = ColumnMeans(n, np.full(1, factor * limit), ONE)
        assert find_drifted_means(then, now, 10).tolist() == [drifted]


def test_one_far_value_is_no_drift_of_the_mean() -> None:
    rows = np.random.default_rng(0).normal(size=50)
    rows[0] = 1e6
    now = ColumnMeans(50, rows.mean(keepdims=True), rows.std(keepdims=True))
    assert not find_drifted_means(ColumnMeans(500, np.zeros(1), ONE), now, 3).any()


def test_columns_that_were_constant_have_no_shift() -> None:
    then = ColumnMeans(50, np.array([1.0, 2.0, 0.0]), np.zeros(3))
    now = ColumnMeans(50, np.array([1.0, 3.0, 0.01]), np.array([0.0, 0.0, 0.07]))
    assert np.isnan(find_shifts(then, now)).all()
    assert find_drifted_means(then, now, 7).tolist() == [False, True, False]


def test_an_empty_cluster_that_fills_is_a_drift() -> None:
    then, now = np.array([0, 60, 40]), np.array([15, 20, 15])
    found = find_drifted_means(share_means(then), share_means(now), 9)
    assert found.tolist() == [True, False, False]


def test_variables_are_measured_as_pandas_does() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(50, 3, (90, 3))
    X[rng.random((90, 3)) < 0.2] = np.nan
    X[:, 2] = np.nan
    found = measure_variables(MatrixSource(X, gaps=True))
    known = X[:, :2]
    assert found.counts.tolist() == [*np.isfinite(known).sum(axis=0), 0]
    np.testing.assert_allclose(found.mean[:2], np.nanmean(known, axis=0))
    deviations = np.nanvar(known, axis=0) * found.counts[:2]
    np.testing.assert_allclose(found.deviations[:2], deviations)
    np.testing.assert_array_equal(found.minimum[:2], np.nanmin(known, axis=0))
    np.testing.assert_array_equal(found.maximum[:2], np.nanmax(known, axis=0))
    assert found.missing_shares[2] == 1.0


@pytest.mark.parametrize("name", SHAPES)
def test_equal_rows_are_seldom_alarmed_and_moved_ones_are(name: str) -> None:
    rng, shape = np.random.default_rng(7), SHAPES[name]
    alarms = moved = 0
    for _ in range(100):
        then, now = shape(rng, 150, 8), shape(rng, 80, 8)
        alarms += is_alarmed(then, now)
        now[:, 3] += 2 * then[:, 3].std()
        moved += is_alarmed(then, now)
    assert alarms <= 100 * MOST_FALSE
    assert moved >= 95
