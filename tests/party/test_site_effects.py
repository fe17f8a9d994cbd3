"""Clusters that follow the sites are seen, and every warning prints the figure it names."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from clustering_protocols.contract import Params
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.protocols.omnifc import OmniFC
from party_sdk.lab.simulated_session import SimulatedSession, simulate
from party_sdk.results.cautions import oddities, site_agreement, site_effects
from party_sdk.tables import ReadOptions, examine

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

BLOBS, _ = make_blobs(240, 4, centers=3, random_state=1)
UNITS = (BLOBS - BLOBS.mean(axis=0)) / BLOBS.std(axis=0)
ANY_UNITS = {"allow_other_units": True}


def _shifted(by: float) -> list[np.ndarray]:
    """Return three sites with the same kinds of rows, shifted by so many deviations."""
    return [UNITS[site::3] + by * site for site in range(3)]


@pytest.mark.parametrize("protocol", [DataCollaboration, LosslessFederated, OmniFC])
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
        first = next(oddities(own.tolist(), sizes.tolist()))
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
        assert not list(site_effects(counts))
    assert abs(np.mean(drawn)) < 0.005
    assert site_agreement(np.diag([20, 30, 40])) == pytest.approx(1.0)
    nested = np.array([[10, 10, 0, 0], [0, 0, 9, 12]])
    assert site_agreement(nested) == pytest.approx(1.0)
    assert site_agreement(np.array([[10, 10]])) is None
    assert site_agreement(np.array([[10, 0], [12, 0]])) is None


HONEST = 60 + make_blobs(240, 4, centers=2, random_state=0, cluster_std=2.0)[0]
every_protocol = pytest.mark.parametrize(
    "protocol", [DataCollaboration, LosslessFederated, OmniFC]
)


def told(protocol: type[Params], third: np.ndarray) -> list[list[str]]:
    """What each of three parties is told, the last with these rows."""
    tables = [HONEST[:80], HONEST[80:160], third]
    session = simulate(protocol(n_clusters=3), tables, "rows", choices=ANY_UNITS)
    labels = [each[each >= 0] for each in session.labels]
    sizes = np.bincount(np.concatenate(labels), minlength=3).tolist()
    own = (np.bincount(each, minlength=3).tolist() for each in labels)
    return [list(oddities(each, sizes)) for each in own]


@every_protocol
def test_zeros_are_seen_by_those_who_send_them_and_by_the_others(
    protocol: type[Params],
) -> None:
    *others, own = told(protocol, np.zeros((80, 4)))
    assert all("none of yours" in " ".join(sentences) for sentences in others)
    assert "all of them yours" in " ".join(own)


@every_protocol
def test_parties_of_one_kind_are_told_nothing(protocol: type[Params]) -> None:
    assert told(protocol, HONEST[160:]) == [[], [], []]


def test_chance_alone_is_told_of_never() -> None:
    rng = np.random.default_rng(0)
    for _ in range(3000):
        k, share = int(rng.integers(2, 9)), rng.uniform(0.02, 0.98)
        labels, mine = rng.integers(0, k, 300), rng.random(300) < share
        own = np.bincount(labels[mine], minlength=k).tolist()
        assert not list(oddities(own, np.bincount(labels, minlength=k).tolist()))


@pytest.mark.parametrize(
    ("own", "sizes"), [([0, 0], [9, 9]), ([9, 9], [9, 9]), ([], []), ([0, 1], [0, 2])]
)
def test_who_has_all_rows_or_none_is_told_nothing(
    own: list[int], sizes: list[int]
) -> None:
    assert not list(oddities(own, sizes))


def test_a_table_of_zeros_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    for columns, row, said in (
        ("crp,age,ward", "0,{n},7", ("Nothing but 0: 'crp'", "all rows: 'ward'")),
        ("crp,age", "0,0", ("Nothing but 0: 'crp', 'age'", "No column tells two")),
    ):
        lines = [f"p{n},{row.format(n=3 * n % 7)}" for n in range(12)]
        path.write_text("\n".join([f"id,{columns}", *lines]))
        report, _ = examine(path, ReadOptions(id_column="id"))
        assert all(any(each in w for w in report.warnings) for each in said)


WIDE, _ = make_blobs(120, 40, centers=3, cluster_std=9.0, random_state=2)
SMALL, _ = make_blobs([60, 60, 4], 4, cluster_std=0.2, random_state=5)
FEW, _ = make_blobs(90, 2, centers=6, cluster_std=0.8, random_state=4)
FAR = np.vstack([UNITS, [[80.0] * 4]])
NARROW = DataCollaboration(n_clusters=6, dimensions="all_but_one")
FIGURE = re.compile(r"(\d+\.\d+) times[^;]*?\((objective_ratio\w*)\)")
NAMED = re.compile(
    r"(pooled_agreement|objective_ratio|site agreement)(?: of)? (\d+\.\d+)"
)


def _played() -> list[SimulatedSession]:
    anything = {"choices": ANY_UNITS}
    return [
        simulate(NARROW, FEW, (3, 1), seed=1),
        simulate(LosslessFederated(n_clusters=12), SMALL, (3, 1)),
        simulate(DataCollaboration(n_clusters=6), WIDE, (3, 1)),
        simulate(OmniFC(n_clusters=3), _shifted(3.0), "rows", **anything),
        simulate(DataCollaboration(n_clusters=3), FAR, (3, 1), **anything),
    ]


def test_each_warning_s_number_is_the_figure_that_it_names() -> None:
    seen = set()
    for session in _played():
        text = " ".join(session.warnings)
        pairs = [(name, value) for value, name in FIGURE.findall(text)]
        pairs += [
            (name.replace(" ", "_"), value) for name, value in NAMED.findall(text)
        ]
        for name, value in pairs:
            digits = len(value.partition(".")[2])
            assert f"{getattr(session, name):.{digits}f}" == value, name
            seen.add(name)
    assert seen == {
        "objective_ratio",
        "objective_ratio_same_rules",
        "pooled_agreement",
        "site_agreement",
    }


def test_a_cluster_of_one_row_is_called_an_outlier() -> None:
    session = simulate(DataCollaboration(n_clusters=3), FAR, (3, 1), choices=ANY_UNITS)
    assert 1 in np.bincount(session.labels)
    assert any("one or two rows: outliers?" in said for said in session.warnings)
