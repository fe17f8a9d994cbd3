"""How many rows follow from the sums that a party has answered."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from clustering_protocols.contract import row_history
from clustering_protocols.contract.row_history import (
    SHARE,
    RowHistory,
    most_derivable_rows,
)
from clustering_protocols.records.arrays import FloatArray, IntArray

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
    found = RowHistory.empty(n_rows)
    for labels in partitions:
        found = found.after_partition(np.asarray(labels, np.int64))
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
    M = memberships(partitions, n_rows)
    errors = [
        np.abs(M.T @ np.linalg.lstsq(M.T, e, rcond=None)[0] - e).max()
        for e in np.eye(n_rows)
    ]
    return int(np.count_nonzero(np.array(errors) < 1e-7))


@settings(max_examples=150)
@given(PARTITIONS, st.integers(0, 9))
def test_rows_that_follow_are_those_that_least_squares_solves(
    partitions: list[list[int]], enough: int
) -> None:
    """A count that stops early, below ``enough``, is an upper bound."""
    n_rows = len(partitions[0])
    arrays = [np.array(each) for each in partitions]
    found, exact = history(arrays, n_rows), solved(arrays, n_rows)
    assert found.count_derivable_rows() == exact
    early = found.count_derivable_rows(enough)
    assert early == exact or exact <= early <= enough
    assert np.linalg.matrix_rank(memberships(arrays, n_rows)) <= found.n_sums


@settings(max_examples=50)
@given(st.lists(PARTITIONS, min_size=1, max_size=6))
def test_an_audit_that_goes_on_counts_as_one_that_begins(
    tables: list[list[list[int]]],
) -> None:
    """Of tables in turns, more than are remembered, with a row more at the end."""
    for n_partitions in range(1, 7):
        for partitions in tables:
            n_rows = len(partitions[0])
            arrays = [np.array(each) for each in partitions[:n_partitions]]
            assert history(arrays, n_rows).count_derivable_rows() == solved(
                arrays, n_rows
            )
            arrays.append(np.zeros(n_rows + 1, np.int64))
            more = history(arrays, n_rows + 1)
            assert more.count_derivable_rows() == solved(arrays, n_rows + 1)


def test_an_audit_goes_on_from_what_the_last_one_spanned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As many rows as the pseudo-inverse says; each partition is decomposed once."""
    rng, n_rows = np.random.default_rng(0), 80
    moved = rng.integers(0, 3, n_rows)
    found, decomposed = RowHistory.empty(n_rows), list[int]()

    def svd(rows: FloatArray, *, full_matrices: bool) -> object:
        decomposed.append(len(rows))
        return _svd(rows, full_matrices=full_matrices)

    _svd = np.linalg.svd
    monkeypatch.setattr(np.linalg, "svd", svd)
    partitions = []
    for _ in range(30):
        moved[rng.integers(0, n_rows, 3)] = rng.integers(0, 3)
        partitions.append(moved.copy())
        found = found.after_partition(moved)
        M = memberships(partitions, n_rows)
        leverage = np.einsum("sj,js->j", M, np.linalg.pinv(M))
        assert found.count_derivable_rows() == np.count_nonzero(leverage > 1 - 1e-8)
        assert found.count_derivable_rows() == found.count_derivable_rows()
    assert found.count_derivable_rows() > 20
    assert sum(decomposed) == 3 * 30
    assert max(decomposed[1:]) == 3


def test_a_history_that_was_cut_back_has_more_classes_than_its_sums(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An audit before it has spanned the same partitions with fewer classes."""
    rng, n_rows = np.random.default_rng(3), 12
    partitions = [rng.integers(0, 3, n_rows) for _ in range(4)]
    short = history(partitions[:2], n_rows)
    short.find_derivable_rows()
    long = history(partitions, n_rows)
    cut = long.model_copy(update={"labels": long.labels[:2]})
    found = cut.find_derivable_rows()
    monkeypatch.setattr(row_history, "_spans", [])
    assert found.tolist() == cut.find_derivable_rows().tolist()


def test_of_large_tables_sums_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_history, "MOST_ROWS", 50)
    labels = np.arange(60) % 3
    found = history([labels, labels], 60)
    assert not found.whole
    assert (found.count_derivable_rows(), found.of_row.size) == (5, 0)
    assert found.labels.shape == (0, 0)


def test_rows_in_no_sum_make_a_partition_one_of_some_rows() -> None:
    some = history([np.array([-1, 0, 0, 1])], 4)
    assert (some.n_sums, some.all_rows) == (2, False)
    every = some.after_partition(np.array([0, 0, 1, 1])).after_partition(
        np.array([1, 0, 1, 1])
    )
    assert (every.n_sums, every.all_rows) == (5, True)
    assert not history([np.array([-1, -1, -1, -1])], 4).n_sums


def test_a_history_beyond_its_bytes_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_history, "MOST_BYTES", 4 * (40 + 3 * 4))
    labels = np.arange(40) % 4
    at_limit = history([labels] * 3, 40)
    assert at_limit.whole
    beyond = at_limit.after_partition(labels)
    assert not beyond.whole
    assert (at_limit.count_derivable_rows(), beyond.count_derivable_rows()) == (
        0,
        beyond.n_sums,
    )
    assert beyond.n_sums == at_limit.n_sums + 3 == 13


@pytest.mark.parametrize(
    ("share", "n_rows", "most"),
    [(SHARE, 50, 12), (SHARE, 8, 2), (0.0, 99, 0), (1, 9, 9)],
)
def test_a_share_of_nothing_is_no_row(share: float, n_rows: int, most: int) -> None:
    assert most_derivable_rows(share, n_rows) == most
