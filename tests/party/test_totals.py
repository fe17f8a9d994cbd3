"""Sums over few rows that follow from the totals of several sessions."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from party_sdk.disclosures.history import reveals_few_rows


def totals_of(*rows: Sequence[int] | range) -> list[np.ndarray]:
    return [np.array(each, dtype=np.uint64) for each in rows]


def has_sum_over_few(totals: list[np.ndarray], minimum: int) -> bool:
    """Return the answer of a search through all sets of fewer rows than ``minimum``."""
    rows = np.unique(np.concatenate(totals))
    M = np.array([np.isin(rows, total) for total in totals], float)
    last = np.eye(len(M))[-1]
    if np.linalg.matrix_rank(M) == np.linalg.matrix_rank(M[:-1]):
        return False  # the last total follows from the others
    for n in range(1, minimum):
        for few in itertools.combinations(range(len(rows)), n):
            rest = np.delete(M, few, axis=1)
            # is there a combination with the last total that is zero on the rest?
            both = np.column_stack([rest, last])
            if np.linalg.matrix_rank(both) > np.linalg.matrix_rank(rest):
                return True
    return False


@pytest.mark.threat(156)
@pytest.mark.parametrize("seed", range(40))
def test_random_totals_are_judged_as_by_a_complete_search(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_totals, minimum = rng.integers(2, 7), 4
    sizes = rng.integers(1, 5, 6)
    owner = np.repeat(np.arange(6), sizes)
    members = rng.random((n_totals, 6)) < 0.6
    members[:, 0] = True
    totals = totals_of(*(np.flatnonzero(each[owner]) for each in members))
    assert reveals_few_rows(totals, minimum) == has_sum_over_few(totals, minimum)


@pytest.mark.threat(156)
def test_a_sum_over_two_rows_is_found_though_its_parts_have_enough() -> None:
    """Two combinations have ten rows each; other totals split nine of these."""
    common = range(100, 109)
    splits = [[*range(200, 220), *(r for r in common if r >> k & 1)] for k in range(4)]
    before = totals_of(range(200, 220), *splits, [0, *common, *range(300, 320)])
    before += totals_of(range(300, 320))
    assert reveals_few_rows([*before, *totals_of([1, *common])], 3)
    assert not reveals_few_rows([*before, *totals_of([1, 2, 3, *common])], 3)


@pytest.mark.threat(156)
def test_a_sum_that_earlier_totals_reveal_refuses_no_other_session() -> None:
    before = totals_of(range(30), range(1, 30))
    assert reveals_few_rows(before, 10)
    assert not reveals_few_rows([*before, *totals_of(range(40))], 10)
    assert not reveals_few_rows([*before, *totals_of(range(30))], 10)
    assert reveals_few_rows([*before, *totals_of(range(2, 30))], 10)
