"""Several numbers of clusters in one session: runs equal single ones, and their risks."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine

from clustering_protocols import catalogue, simulation
from clustering_protocols.common.errors import (
    GuardRefused,
    InvalidParameters,
    ProtocolFailed,
)
from clustering_protocols.numerics.data_source import matrix
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.protocols.llf import LosslessFederated as Llf
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.shared_stages.starts.messages import StartCentroids
from clustering_protocols.simulation import Session
from clustering_protocols.terms.sections import Evaluation
from clustering_protocols.terms.terms import Layout
from tests.protocols.llf.llf_sessions import numbers_of, three_parties, unaudited
from tests.protocols.llf.reading_off import read_off, run_of

LAYOUT = Layout.lattice(3)
KS = (2, 3, 4)
RUNS = Evaluation(n_clusters=KS)


def several(evaluation: Evaluation = RUNS, **params: Any) -> Session:
    return three_parties(evaluation=evaluation, choices=unaudited(LAYOUT), **params)


@pytest.mark.thorough
@pytest.mark.parametrize("run", range(len(KS)))
@pytest.mark.quick(1)
def test_a_run_is_the_session_with_its_start_given_bit_for_bit(
    monkeypatch: pytest.MonkeyPatch, run: int
) -> None:
    monkeypatch.setattr(Evaluation, "best_run", lambda *_: run)
    whole = several()
    found = whole.run_to_end()
    memory = whole.memories["r1c1"].scope_to_run(run)
    start = memory.get(StartCentroids)
    assert start is not None
    V = tuple(tuple(map(float, row)) for row in start.centroids)
    given = {"n_clusters": KS[run], "init": "given", "initial_centroids": V}
    alone = three_parties(**given).run_to_end()
    labels, expected = (
        np.concatenate([o.labels for o in each.outcomes.values()])
        for each in (found, alone)
    )
    numbers = numbers_of(labels, expected, KS[run])  # given starts keep their numbers
    for slot, outcome in found.outcomes.items():
        other = alone.outcomes[slot]
        assert outcome.centroids is not None
        assert other.centroids is not None
        assert outcome.centroids.tobytes() == other.centroids[numbers].tobytes()
        assert numbers[outcome.labels].tobytes() == other.labels.tobytes()
        assert outcome.figures[run].agrees_with(other.figures[0])


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("name", ["iris", "wine"])
def test_runs_are_lossless_and_pick_what_pooled_rows_pick(
    name: str, *, columns: bool
) -> None:
    X = (load_iris if name == "iris" else load_wine)().data
    layout = Layout.lattice(1, 3) if columns else LAYOUT
    parts = simulation.split(X, layout, 0)
    found = simulation.evaluate(Llf(n_clusters=4), X, parts, 0, evaluation=RUNS)
    assert found.fidelity == 1.0
    known = "calinski_harabasz" if columns else "simplified_silhouette"
    values = [getattr(figures, known) for figures in found.simulated.figures]
    assert found.simulated.chosen == int(np.argmax(values))


def test_published_measures_must_equal_the_computed_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rounded = Figures.round_values
    monkeypatch.setattr(
        Figures,
        "round_values",
        lambda self: rounded(self).model_copy(update={"inertia": 1.0}),
    )
    with pytest.raises(
        ProtocolFailed, match="figures that differ from those of this party"
    ):
        several().run_to_end()


@pytest.mark.parametrize("params", [{"quorum": 3}, {"publish": "nothing"}])
def test_runs_need_everybody_and_figures(params: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameters, match="Several n_clusters"):
        several(**params)


def test_runs_need_a_start_of_any_number_of_clusters() -> None:
    start = ((0.0, 0.0), (1.0, 1.0), (2.0, 2.0), (3.0, 3.0))
    with pytest.raises(InvalidParameters, match=r"one number|has 4 rows for 2"):
        several(init="given", initial_centroids=start)


def test_a_rule_that_columns_cannot_apply_is_refused() -> None:
    layout = Layout.lattice(1, 3)
    parts = simulation.split(load_iris().data, layout, 0)
    runs = Evaluation(n_clusters=KS, choose="davies_bouldin")
    with pytest.raises(InvalidParameters, match=r"it computes calinski_harabasz\."):
        Session(Llf(n_clusters=4), layout, parts.data, 0, evaluation=runs)


def test_several_runs_of_rows_bring_a_risk_that_one_does_not() -> None:
    code = "llf.runs-single-out-rows"
    assert code in several().session.terms.risks
    assert code not in three_parties().session.terms.risks
    assert code in catalogue.protocol_risks("llf")


def test_guards_count_the_equations_of_all_runs() -> None:
    fuzzy: dict[str, Any] = {"algorithm": "fuzzy_cmeans", "max_iter": 5}
    with pytest.raises(ProtocolFailed, match="totals of 160 rows"):
        several(**{**fuzzy, "max_iter": 7})
    many = Evaluation(n_clusters=tuple(range(2, 12)))
    whole = several(many, **fuzzy, n_clusters=11, small_cohorts="allow")
    with pytest.raises(GuardRefused, match="could be solved"):  # 77 · 1.5 equations
        whole.run_to_end()


def test_each_party_reads_how_many_of_its_rows_stand_alone() -> None:
    found = several().run_to_end()
    name = "rows whose clusters in all runs no other row shares"
    for slot, outcome in found.outcomes.items():
        assert outcome.report[name] in range(found.orders[slot].size)
    alone = several(Evaluation(n_clusters=(2, 60)), n_clusters=60).run_to_end()
    assert sum(int(o.report[name]) for o in alone.outcomes.values()) > 20


@pytest.mark.threat(106)
@pytest.mark.parametrize(
    ("name", "nine_runs", "most_of_one"),
    [
        ("iris", (16, 31), 5),
        pytest.param("wine", (20, 32), 5, marks=pytest.mark.thorough(only=True)),
    ],
)
@pytest.mark.slow
def test_subtracting_sums_of_several_runs_reveals_rows(
    name: str, nine_runs: tuple[int, int], most_of_one: int
) -> None:
    """What the risk says, in percent: two sums without its own rows differ by a row.

    By default the others' own audit stops such a session; here they lift it.
    """
    X = (load_iris if name == "iris" else load_wine)().data
    with pytest.raises(GuardRefused, match=r"'sums_limit' is 0\.25"):
        nine_runs_of(X, 0).run_to_end()
    found = [shares_read_off(X, seed) for seed in range(8)]
    together = [share for _, share in found]
    assert (min(together), max(together)) == nine_runs
    assert max(one for one, _ in found) == most_of_one


NINE = tuple(range(2, 11))


def nine_runs_of(X: FloatArray, seed: int, **more: Any) -> Session:
    data, runs = simulation.split(X, LAYOUT, seed).data, Evaluation(n_clusters=NINE)
    return Session(Llf(n_clusters=10), LAYOUT, data, seed, evaluation=runs, **more)


def shares_read_off(X: FloatArray, seed: int) -> tuple[int, int]:
    """Return the percent of others' rows of one run of k up to 4, and of all nine."""
    s = nine_runs_of(X, seed, choices=unaudited(LAYOUT))
    s.run_to_end()
    own, *rest = (matrix(s.data[slot]) for slot in LAYOUT.names)
    pooled = np.vstack([own, *rest])
    Z = (pooled - pooled.mean(axis=0)) / pooled.std(axis=0)
    cells = []
    for run in range(len(NINE)):
        start = s.memories["r1c1"].scope_to_run(run).get(StartCentroids)
        assert start is not None
        cells.append([labels[len(own) :] for labels in run_of(Z, start.centroids)])
    ones = [read_off(k, run) for k, run in zip(NINE, cells, strict=True)]
    together = read_off(10, [labels for run in cells for labels in run])
    others = len(pooled) - len(own)
    return round(100 * max(ones[:3]) / others), round(100 * together / others)
