"""Which rows follow from sums over clusters, whoever chose the clusters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.contract import row_history
from clustering_protocols.contract.row_history import RowHistory, most_following

PARTITIONS = st.integers(2, 4).flatmap(
    lambda k: st.integers(2, 9).flatmap(
        lambda n: st.lists(
            st.lists(st.integers(-1, k - 1), min_size=n, max_size=n),
            min_size=1,
            max_size=6,
        )
    )
)


def history(partitions: list[IntArray], n_rows: int) -> RowHistory:
    found = RowHistory.of_none(n_rows)
    for labels in partitions:
        found = found.after(np.asarray(labels, np.int64))
    return found


def memberships(partitions: list[IntArray], n_rows: int) -> FloatArray:
    """Return a row of zeros and ones for each sum over own rows."""
    found = [np.zeros(n_rows)]
    for labels in partitions:
        for cluster in np.unique(labels):
            row = np.zeros(n_rows)
            row[: len(labels)] = np.asarray(labels) == cluster
            found.append(row * (cluster >= 0))
    return np.array(found)


def solved(partitions: list[IntArray], n_rows: int) -> int:
    """Return how many rows e_i are combinations of sums: by least squares."""
    M = memberships(partitions, n_rows)
    errors = [
        np.abs(M.T @ np.linalg.lstsq(M.T, e, rcond=None)[0] - e).max()
        for e in np.eye(n_rows)
    ]
    return int(np.count_nonzero(np.array(errors) < 1e-7))


@settings(max_examples=150)
@given(PARTITIONS)
def test_rows_that_follow_are_those_that_least_squares_solves(
    partitions: list[list[int]],
) -> None:
    n_rows = len(partitions[0])
    arrays = [np.array(each) for each in partitions]
    found = history(arrays, n_rows)
    assert found.n_following() == solved(arrays, n_rows)
    assert np.linalg.matrix_rank(memberships(arrays, n_rows)) <= found.n_sums


@settings(max_examples=50)
@given(PARTITIONS, st.integers(0, 9))
def test_what_is_said_early_is_a_bound(
    partitions: list[list[int]], enough: int
) -> None:
    n_rows = len(partitions[0])
    arrays = [np.array(each) for each in partitions]
    exact, early = solved(arrays, n_rows), history(arrays, n_rows).n_following(enough)
    assert exact <= early
    assert early == exact or early <= enough


def test_a_row_that_changed_its_cluster_alone_follows() -> None:
    before, after = np.repeat([0, 1], 5), np.repeat([0, 1], 5)
    after[3] = 1
    assert history([before], 10).n_following() == 0
    assert history([before, before], 10).n_sums == 3
    assert history([before, after], 10).n_following() == 1


def test_rows_that_no_sum_holds_are_counted_with_the_others() -> None:
    """A table that grew by one row: the sums of all of it, before and after."""
    whole = history([np.zeros(9, np.int64), np.zeros(10, np.int64)], 10)
    assert whole.n_following() == 1


def test_of_large_tables_sums_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_history, "MOST_ROWS", 50)
    labels = np.arange(60) % 3
    found = history([labels, labels], 60)
    assert not found.whole
    assert (found.n_following(), found.of_row.size, found.labels.size) == (5, 0, 0)


def test_a_history_beyond_its_bytes_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_history, "MOST_BYTES", 4 * (40 + 3 * 4))
    labels = np.arange(40) % 4
    at_limit = history([labels] * 3, 40)
    assert at_limit.whole
    beyond = at_limit.after(labels)
    assert not beyond.whole
    assert (at_limit.n_following(), beyond.n_following()) == (0, beyond.n_sums)
    assert beyond.n_sums == at_limit.n_sums + 3 == 13


def test_a_history_is_read_as_it_was_written() -> None:
    found = history([np.arange(12) // 4, np.arange(12) // 5], 12)
    again = RowHistory.decode(found.encode())
    assert again.n_following() == found.n_following() == 1
    np.testing.assert_array_equal(again.labels, found.labels)


@pytest.mark.parametrize(
    ("share", "n_rows", "most"), [(0.25, 50, 12), (0.25, 8, 3), (0.0, 99, 3), (1, 9, 9)]
)
def test_three_rows_may_follow_of_any_table(
    share: float, n_rows: int, most: int
) -> None:
    assert most_following(share, n_rows) == most
