"""Fuzzy c-means over split rows is refused if the other parties have too few rows."""

from typing import Any

import numpy as np
import pytest
from support.examples import refuse_first_tasks
from support.tables import cut, within

from clustering_protocols import result_warnings
from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.protocols.llf import LosslessFederated as Llf
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.simulation import Session
from clustering_protocols.terms.terms import Layout
from party_sdk.advice import check_sizes
from tests.protocols.llf.llf_sessions import start_session

SEED = 5


def table(n: int, width: int = 2) -> FloatArray:
    return np.random.default_rng(0).normal(size=(n, width))


def begun(sizes: list[int], **params: Any) -> Session:
    given: dict[str, Any] = {"n_clusters": 2, "algorithm": "fuzzy_cmeans", **params}
    return start_session(table(sum(sizes)), sizes=sizes, seed=SEED, **given)


# What is refused: with k = 2, F = 2, T = 3 it takes 2·(3 + 2)·2·1.5 = 30
# rows of others


@pytest.mark.threat(99)
@pytest.mark.parametrize(
    ("sizes", "params"),
    [
        ([15, 15, 15], {}),
        ([400, 15, 15], {}),
        ([400, 400, 400, 10, 20], {"quorum": 3}),
        ([400, 30], {"allow_two_parties": True}),
    ],
)
def test_as_many_rows_of_others_as_it_takes_are_enough(
    sizes: list[int], params: dict[str, Any]
) -> None:
    begun(sizes, max_iter=3, **params)
    fewer = [size - (size == min(sizes)) for size in sizes]
    with pytest.raises(ProtocolFailed, match=r"totals of 2[89] rows"):
        begun(fewer, max_iter=3, **params)


@pytest.mark.parametrize(
    "params", [{"algorithm": "cmeans"}, {"small_cohorts": "allow"}]
)
def test_others_are_not_refused(params: dict[str, Any]) -> None:
    begun([15, 15, 15], **params)


@pytest.mark.threat(99)
def test_a_party_refuses_what_its_analyst_begins_all_the_same() -> None:
    layout = Layout.lattice(3)
    data = cut(table(45), layout, [15] * 3)
    params = Llf(n_clusters=2, algorithm="fuzzy_cmeans")
    refuse_first_tasks(params, layout, data, SEED, "solve them for the rows")


@pytest.mark.parametrize("limit", [0.25, 1.0])
def test_columns_of_few_values_are_refused_where_rows_are_first_used(
    limit: float,
) -> None:
    layout = Layout.lattice(3)
    data = cut(np.rint(table(300)), layout, [100] * 3)
    given: dict[str, Any] = {"init": "bounds", "max_iter": 3}
    params = Llf(n_clusters=2, algorithm="fuzzy_cmeans", scaling="none", **given)
    said = within(-9.0, 9.0, data, layout)
    with pytest.raises(GuardRefused, match="Columns repeat their values"):
        Session(
            params,
            layout,
            data,
            SEED,
            dictionary=said,
            choices={"r2c1": {"sums_limit": limit}},
        ).run_to_end()


def test_a_lower_limit_says_how_many_updates_fit() -> None:
    def played(max_iter: int) -> Session:
        chosen = {"r2c1": {"sums_limit": 0.1}}
        s = begun([50] * 3, max_iter=max_iter, choices=chosen)
        s.run_to_end()
        return s

    with pytest.raises(
        GuardRefused, match=r"'sums_limit' is 0\.1: .* max_iter 4 would"
    ):
        played(5)
    played(4)


def test_where_no_sum_is_allowed_the_limit_is_what_helps() -> None:
    s = begun([50] * 3, max_iter=3, choices={"r2c1": {"sums_limit": 0}})
    with pytest.raises(GuardRefused, match="Raise 'sums_limit'") as refused:
        s.run_to_end()
    assert "clusters" not in str(refused.value)


def test_rounds_that_fit_are_said_before_anybody_joins() -> None:
    params, layout = Llf(n_clusters=2, algorithm="fuzzy_cmeans"), Layout.lattice(3)
    (sentence,) = result_warnings.find_session_warnings(params, layout, [2])
    assert "hold 612 rows together" in sentence
    with pytest.raises(ProtocolFailed, match="max_iter of at most 4"):
        check_sizes(params, layout, 60, 2)
    assert not result_warnings.find_session_warnings(
        params.model_copy(update={"small_cohorts": "allow"}), layout, [2]
    )
