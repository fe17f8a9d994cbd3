"""What means little is said: coinciding and small clusters, narrow parties, noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from clustering_protocols import catalogue, result_warnings
from clustering_protocols.common.errors import InvalidParameters, ProtocolFailed
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.protocols.omnifc import OmniFC
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.session_terms import build_request, check_named, draw_up
from clustering_protocols.terms.sections import Evaluation
from clustering_protocols.terms.terms import Layout, read_terms
from party_sdk.advice import Situation, advise, check_sizes, size_warnings
from party_sdk.coordinator.option_parsing import earlier_values
from party_sdk.estimators import FederatedFuzzyCMeans, FederatedKMeans
from party_sdk.lab.simulated_session import simulate

ROWS = Layout.lattice(3)
WIDE, _ = make_blobs(120, 40, centers=3, cluster_std=9.0, random_state=2)
NARROW, _ = make_blobs(90, 2, centers=6, cluster_std=0.8, random_state=4)
SMALL, _ = make_blobs([60, 60, 4], 4, cluster_std=0.2, random_state=5)


@pytest.mark.parametrize("protocol", ["omnifc", "llf"])
def test_fuzzy_clusters_that_coincide_are_warned_of(protocol: str) -> None:
    params = {"small_cohorts": "allow"} if protocol == "llf" else {}
    found = FederatedFuzzyCMeans(
        3,
        protocol=protocol,
        fuzzifier=2.0,
        layout=(3, 1),
        random_state=0,
        params=params,
    )
    with pytest.warns(UserWarning, match="All 3 clusters coincide.*Lower fuzziness"):
        found.fit(WIDE)
    figures = found.session_.figures
    assert figures is not None
    assert figures.partition_coefficient is None, "one cluster for all is not the best"
    assert figures.xie_beni is None


def test_parties_of_few_columns_are_warned_of_with_the_loss() -> None:
    hidden = {"dimensions": "all_but_one"}
    lost = FederatedKMeans(6, layout=(3, 1), params=hidden, random_state=1)
    with (
        pytest.warns(UserWarning, match="dimensions 'all_but_one'.*Here it is 0"),
        pytest.warns(UserWarning, match="institutions"),  # each leaves out another one
        pytest.warns(UserWarning, match=r"objective_ratio\).*same_rules"),
    ):
        lost.fit(NARROW)
    assert (lost.fidelity_ or 0) < 0.95
    kept = FederatedKMeans(6, layout=(3, 1), random_state=1).fit(NARROW)
    assert kept.fidelity_ == 1.0
    assert kept.session_.warnings == ()


def test_clusters_that_kept_their_place_are_warned_of() -> None:
    with (
        pytest.warns(UserWarning, match="Small clusters keep their place"),
        pytest.warns(UserWarning, match=r"The objective is .* times"),
        pytest.warns(UserWarning, match=r"3\.4 rows of each cluster"),
        pytest.warns(UserWarning, match="clusters have no row"),
    ):
        session = simulate(LosslessFederated(n_clusters=12), SMALL, (3, 1))
    assert session.fidelity == 1.0, "it says nothing of the four rows that are lost"
    assert any("fewer than 10 rows" in sentence for sentence in session.warnings)


@pytest.mark.parametrize(
    ("epsilon", "warned"), [(0.5, True), (1.0, True), (500.0, False)]
)
def test_noise_larger_than_codes_is_said_before_the_session(
    epsilon: float, *, warned: bool
) -> None:
    params = ProductQuantisation(
        n_clusters=3, privacy={"mechanism": "laplace", "epsilon": epsilon}
    )
    said = result_warnings.of_session(params, Layout.lattice(1, 2), [4, 4])
    assert bool(said) is warned
    assert not warned or "more than codes can" in said[0]


@pytest.mark.parametrize(
    ("given", "layout", "size", "is_told"),
    [
        ({}, (3, 1), 13, True),
        ({}, (3, 1), 30, False),
        ({"init": "random_party"}, (3, 1), 13, False),
        ({}, (1, 3), 13, False),
    ],
)
def test_parties_with_few_rows_of_each_cluster_are_warned_of(
    given: dict[str, Any], layout: tuple[int, int], size: int, *, is_told: bool
) -> None:
    params = LosslessFederated(n_clusters=31, **given)
    known = catalogue.protocol("llf")
    said = known.cautions_of(params, Layout.lattice(*layout), [size] * 31)
    assert is_told is any("4.3 rows of each cluster" in each for each in said)


def test_advice_leaves_out_what_would_refuse_so_few_rows() -> None:
    few = advise(Situation(partitioning="horizontal", parties=4, rows=60))
    assert "llf, fuzzy_cmeans" not in {fit.name for fit in few.fits}
    many = advise(Situation(partitioning="horizontal", parties=4, rows=20_000))
    assert "llf, fuzzy_cmeans" in {fit.name for fit in many.fits}


@pytest.mark.parametrize(("rows", "update"), [(200, 5), (2_000, 62), (20_000, None)])
def test_advice_warns_of_the_update_at_which_an_audit_may_stop(
    rows: int, update: int | None
) -> None:
    found = advise(Situation(partitioning="horizontal", parties=4, rows=rows))
    [llf] = [fit for fit in found.fits if fit.name == "llf, cmeans"]
    expected = [] if update is None else [f"may stop a session from update {update} of"]
    assert len(llf.warnings) == len(expected)
    assert all(part in said for part, said in zip(expected, llf.warnings, strict=True))


@pytest.mark.parametrize(
    ("rows", "fit"),
    [(300, "n_clusters 2, 1"), (900, "n_clusters 2, 3, 4, 3"), (120, "none")],
)
def test_the_numbers_of_clusters_that_fit_are_counted_before_anybody_joins(
    rows: int, fit: str
) -> None:
    params = LosslessFederated(n_clusters=10)
    several = Evaluation(n_clusters=tuple(range(2, 11)))
    [said] = size_warnings(params, ROWS, rows, 10, several)
    assert f"updates of {fit} of the 9 numbers of clusters" in said
    assert size_warnings(params, ROWS, 9_000, 10, several) == []


@pytest.mark.parametrize(
    ("params", "layout", "rows", "columns", "what"),
    [
        (DataCollaboration(n_clusters=9), ROWS, 8, 4, "there are 8 rows"),
        (DataCollaboration(n_clusters=2), Layout.lattice(1, 3), 90, 4, "One column"),
        (LosslessFederated(n_clusters=2, algorithm="fuzzy_cmeans"), ROWS, 90, 4, "rows"),
    ],
)  # fmt: skip
def test_sizes_are_held_against_the_protocol_s_own_checks(
    params: Any, layout: Layout, rows: int, columns: int, what: str
) -> None:
    with pytest.raises(ProtocolFailed, match=what):
        check_sizes(params, layout, rows, columns)
    check_sizes(params, layout, None, columns)
    check_sizes(params, layout, 900_000, 30)


def test_factors_may_be_more_than_columns() -> None:
    X, _ = make_blobs(80, 3, centers=7, random_state=3)
    params = OmniFC(n_clusters=7, algorithm="nmf", n_init=2, features="distance_rows")
    session = simulate(params, X, (3, 1))
    assert session.fidelity is not None


@pytest.mark.parametrize("distances", ["all", "landmarks"])
def test_a_distance_equal_to_eps_counts_as_within_it(distances: Any) -> None:
    grid = 0.1 * np.array([[i, j] for i in range(8) for j in range(8)])
    grid = np.vstack([grid, grid + 5.3])
    params = OmniFC(
        algorithm="dbscan", eps=0.1, min_samples=3, scaling="none", distances=distances
    )
    session = simulate(params, grid, (3, 1))
    assert session.fidelity == 1.0
    assert len(set(session.labels)) == 2, "each grid is one cluster, with no noise"


def test_whoever_opens_a_session_of_dc_names_its_dimensions() -> None:
    layout = Layout.lattice(2)
    with pytest.raises(InvalidParameters, match=r"'all_but_one' leaves one .*'all'"):
        check_named(DataCollaboration(n_clusters=2))
    for dimensions in ("all", "all_but_one"):
        named = DataCollaboration.model_validate(
            {"n_clusters": 2, "dimensions": dimensions}
        )
        check_named(named)
        request = build_request(named, layout, seed=1)
        earlier = earlier_values(
            read_terms(draw_up("s", request, simulated=True)), "dc"
        )
        assert earlier["dimensions"] == dimensions, (
            "a session that is repeated names it"
        )


@pytest.mark.filterwarnings("ignore:The clusters are others")
def test_no_clusters_is_said_where_several_numbers_are_compared() -> None:
    ball = np.random.default_rng(3).normal(size=(240, 3))
    several = Evaluation(n_clusters=(2, 3, 4))
    params = DataCollaboration(n_clusters=4)
    with pytest.warns(UserWarning, match="No clusters: the gap statistic"):
        session = simulate(params, ball, (3, 1), evaluation=several)
    [first, *_] = session.results
    said = result_warnings.of_result(
        session.params,
        layout=session.layout,
        report={},
        figures=first.figures[first.chosen],
        sizes=None,
        runs=first.figures,
    )
    assert any("No clusters" in sentence for sentence in said), "a party reads it too"
