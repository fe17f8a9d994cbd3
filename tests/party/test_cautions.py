"""What means little is said: coinciding or small clusters, narrow parties, noise, sites."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from clustering_protocols import catalogue, result_warnings
from clustering_protocols.common.errors import InvalidParameters, ProtocolFailed
from clustering_protocols.contract import Params
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.protocols.omnifc import OmniFC
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.session_terms import (
    build_request,
    check_required_choices,
    draw_up_terms,
)
from clustering_protocols.terms.sections import Evaluation
from clustering_protocols.terms.terms import Layout, read_terms
from party_sdk.advice import Situation, advise, check_sizes, size_warnings
from party_sdk.coordinator.option_parsing import earlier_params
from party_sdk.estimators import FederatedFuzzyCMeans, FederatedKMeans
from party_sdk.lab.simulated_session import simulate
from party_sdk.results.cautions import (
    site_agreement,
    site_effect_warnings,
    site_warnings,
)
from party_sdk.tables import ReadOptions, examine_table

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


def test_noise_larger_than_codes_is_said_before_the_session() -> None:
    def said(epsilon: float) -> list[str]:
        privacy = {"mechanism": "laplace", "epsilon": epsilon}
        params = ProductQuantisation(n_clusters=3, privacy=privacy)
        layout = Layout.lattice(1, 2)
        return list(result_warnings.find_session_warnings(params, layout, [4, 4]))

    assert "more than codes can" in said(0.5)[0]
    assert said(1.0)
    assert not said(500.0)


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


@pytest.mark.parametrize(("rows", "update"), [(200, "5"), (2_000, "62"), (20_000, "")])
def test_advice_warns_of_the_update_at_which_an_audit_may_stop(
    rows: int, update: str
) -> None:
    found = advise(Situation(partitioning="horizontal", parties=4, rows=rows))
    [llf] = [fit for fit in found.fits if fit.name == "llf, cmeans"]
    assert len(llf.warnings) == bool(update)
    assert all(f"from update {update} of" in said for said in llf.warnings)


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
        (DataCollaboration(n_clusters=2), Layout.lattice(1, 6), 90, 10, "One column"),
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
    with pytest.raises(InvalidParameters, match=r"'all_but_one' drops one .*'all'"):
        check_required_choices(DataCollaboration(n_clusters=2))
    for dimensions in ("all", "all_but_one"):
        named = DataCollaboration.model_validate(
            {"n_clusters": 2, "dimensions": dimensions}
        )
        check_required_choices(named)
        request = build_request(named, layout, seed=1)
        earlier = earlier_params(read_terms(draw_up_terms("s", request)), "dc")
        assert earlier["dimensions"] == dimensions, (
            "a session that is repeated names it"
        )


@pytest.mark.filterwarnings("ignore:The clusters differ")
def test_no_clusters_is_said_where_several_numbers_are_compared() -> None:
    ball = np.random.default_rng(3).normal(size=(240, 3))
    several = Evaluation(n_clusters=(2, 3, 4))
    params = DataCollaboration(n_clusters=4)
    with pytest.warns(UserWarning, match="No clusters: the gap statistic"):
        session = simulate(params, ball, (3, 1), evaluation=several)
    [first, *_] = session.results
    said = result_warnings.find_result_warnings(
        session.params,
        layout=session.layout,
        report={},
        figures=first.figures[first.chosen],
        sizes=None,
        runs=first.figures,
    )
    assert any("No clusters" in sentence for sentence in said), "a party reads it too"


# Clusters that follow the sites


pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

BLOBS = make_blobs(240, 4, centers=3, random_state=1)[0]
UNITS = (BLOBS - BLOBS.mean(axis=0)) / BLOBS.std(axis=0)
ANY_UNITS = {"allow_other_units": True}


def _shifted(by: float) -> list[np.ndarray]:
    """Return three sites with the same kinds of rows, shifted by so many deviations."""
    return [UNITS[site::3] + by * site for site in range(3)]


HONEST = 60 + make_blobs(240, 4, centers=2, random_state=0, cluster_std=2.0)[0]
every_protocol = pytest.mark.parametrize(
    "protocol", [DataCollaboration, LosslessFederated, OmniFC]
)


@every_protocol
def test_sites_that_measure_otherwise_are_the_first_warning(
    protocol: type[Params],
) -> None:
    params = protocol(n_clusters=3)
    here = simulate(params, _shifted(4.0), "rows", choices=ANY_UNITS)
    assert here.site_agreement is not None
    assert here.site_agreement > 0.7
    assert here.warnings[0].startswith("The clusters follow the institutions")
    sizes = np.bincount(np.concatenate(here.labels), minlength=3)
    for labels in here.labels:
        own = np.bincount(labels, minlength=3)
        first = next(site_warnings(own.tolist(), sizes.tolist()))
        assert first.startswith("The clusters follow the institutions")
    alike = simulate(params, _shifted(0.0), "rows", choices=ANY_UNITS)
    assert alike.site_agreement is not None
    assert alike.site_agreement < 0.05
    assert not [said for said in alike.warnings if "institutions" in said]


def test_site_agreement_is_zero_by_chance_one_by_sites_and_none_without() -> None:
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(2000):
        labels, sites = rng.integers(0, 6, 60), rng.integers(0, 3, 60)
        counts = np.zeros((3, 6), dtype=np.int64)
        np.add.at(counts, (sites, labels), 1)
        drawn.append(site_agreement(counts))
        assert not list(site_effect_warnings(counts))
    assert abs(np.mean(drawn)) < 0.005
    assert site_agreement(np.diag([20, 30, 40])) == pytest.approx(1.0)
    nested = np.array([[10, 10, 0, 0], [0, 0, 9, 12]])
    assert site_agreement(nested) == pytest.approx(1.0)
    assert site_agreement(np.array([[10, 10]])) is None
    assert site_agreement(np.array([[10, 0], [12, 0]])) is None


def told(protocol: type[Params], third: np.ndarray) -> list[list[str]]:
    """What each of three parties is told, the last with these rows."""
    tables = [HONEST[:80], HONEST[80:160], third]
    session = simulate(protocol(n_clusters=3), tables, "rows", choices=ANY_UNITS)
    labels = [each[each >= 0] for each in session.labels]
    sizes = np.bincount(np.concatenate(labels), minlength=3).tolist()
    own = (np.bincount(each, minlength=3).tolist() for each in labels)
    return [list(site_warnings(each, sizes)) for each in own]


@every_protocol
def test_zeros_are_seen_by_those_who_send_them_and_by_the_others(
    protocol: type[Params],
) -> None:
    *others, own = told(protocol, np.zeros((80, 4)))
    assert all("none of yours" in " ".join(sentences) for sentences in others)
    assert "all of them yours" in " ".join(own)
    assert told(protocol, HONEST[160:]) == [[], [], []], "sites of one kind"


def test_neither_chance_nor_a_party_that_has_all_rows_or_none_is_told_of() -> None:
    rng = np.random.default_rng(0)
    for _ in range(3000):
        k, share = int(rng.integers(2, 9)), rng.uniform(0.02, 0.98)
        labels, mine = rng.integers(0, k, 300), rng.random(300) < share
        own = np.bincount(labels[mine], minlength=k).tolist()
        assert not list(site_warnings(own, np.bincount(labels, minlength=k).tolist()))
    for own, sizes in ([0, 0], [9, 9]), ([9, 9], [9, 9]), ([], []), ([0, 1], [0, 2]):
        assert not list(site_warnings(own, sizes))


def test_a_table_of_zeros_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    for columns, row, said in (
        ("crp,age,ward", "0,{n},7", ("Only zeros: 'crp'", "all rows: 'ward'")),
        ("crp,age", "0,0", ("Only zeros: 'crp', 'age'", "No column tells two")),
    ):
        lines = [f"p{n},{row.format(n=3 * n % 7)}" for n in range(12)]
        path.write_text("\n".join([f"id,{columns}", *lines]))
        report, _ = examine_table(path, ReadOptions(id_column="id"))
        assert all(any(each in w for w in report.warnings) for each in said)


FAR = np.vstack([UNITS, [[80.0] * 4]])
FEW_DIMENSIONS = DataCollaboration(n_clusters=6, dimensions="all_but_one")


def test_each_warning_s_number_is_the_figure_that_it_names() -> None:
    lost = simulate(FEW_DIMENSIONS, NARROW, (3, 1), seed=1)
    other = simulate(DataCollaboration(n_clusters=6), WIDE, (3, 1))
    said = " ".join((*lost.warnings, *other.warnings))
    for sentence in (
        f"site agreement {lost.site_agreement:.2f}",
        f"{lost.objective_ratio:.2f} times that of the pooled method with ten starts",
        f"{lost.objective_ratio_same_rules:.2f} times that of the pooled method under",
        f"pooled_agreement {other.pooled_agreement:.2f}",
        f"at an objective_ratio of {other.objective_ratio:.3f}",
    ):
        assert sentence in said


def test_a_cluster_of_one_row_is_called_an_outlier() -> None:
    session = simulate(DataCollaboration(n_clusters=3), FAR, (3, 1), choices=ANY_UNITS)
    assert any("one or two rows: outliers?" in said for said in session.warnings)
