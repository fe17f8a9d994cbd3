"""Figures of `llf` equal those that scikit-learn computes from labels and pooled rows."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from support.attacks import sent_packets
from support.lies import altered
from support.repeats import in_turn

from benchmarks import datasets
from clustering_protocols import catalogue
from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.engine import packets
from clustering_protocols.protocols.llf import LosslessFederated as Llf, messages
from clustering_protocols.protocols.llf.columns_party import ColumnsParty
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.secrecy.masks import add_tagged_shares
from clustering_protocols.simulation import SimulationResult
from clustering_protocols.terms.terms import Layout
from tests.protocols.llf.llf_sessions import (
    blobs,
    columns_session,
    session,
    start_session,
    unaudited,
)
from tests.unit.quality.test_figures import expected

FUZZY = {"algorithm": "fuzzy_cmeans", "small_cohorts": "allow"}
SETS = ("iris", "wine", "pendigits")


def load(name: str) -> FloatArray:
    try:
        return datasets.load(name)[0]
    except datasets.MissingDataError as missing:
        pytest.skip(str(missing))


def of_rows(
    X: FloatArray, **params: Any
) -> tuple[SimulationResult, FloatArray, IntArray]:
    run = start_session(X, choices=unaudited(Layout.lattice(3)), **params).run_to_end()
    labels = np.concatenate([outcome.labels for outcome in run.outcomes.values()])
    spread = X.std(axis=0)
    return run, (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0), labels


def said(outcome: Any) -> dict[str, Any]:
    return {**outcome.report, **dict(outcome.figures[0])}


# Split rows


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("case", "k"), in_turn(list(product(SETS, [1e-5, 1e-2, 0.1])), [3, 7])
)
@pytest.mark.quick(3)
def test_figures_of_split_rows_are_scikit_learns(
    case: tuple[str, float], k: int
) -> None:
    name, tol = case
    run, Z, labels = of_rows(load(name), n_clusters=k, tol=tol)
    for outcome in run.outcomes.values():
        told = {of: said(outcome)[of] for of in expected(Z, labels)}
        assert told == pytest.approx(expected(Z, labels), rel=1e-9)
        assert said(outcome)["n_iter"] == said(outcome)["n_updates"]
        assert said(outcome)["converged"]


@pytest.mark.parametrize(
    ("name", "k", "fuzzifier"),
    [("wine", 3, 1.3), ("wine", 3, 2.0), ("wine", 7, 1.3), ("iris", 7, 2.0)],
)
@pytest.mark.quick(2)
def test_quality_of_fuzzy_rows_is_that_of_their_memberships(
    name: str, k: int, fuzzifier: float
) -> None:
    """With seven clusters of wine and an exponent of 2, two centroids coincide."""
    fuzzy: dict[str, Any] = {**FUZZY, "output": "memberships", "fuzzifier": fuzzifier}
    X = load(name)
    run, Z, labels = of_rows(X, n_clusters=k, max_iter=30, **fuzzy)
    U = np.concatenate([outcome.memberships for outcome in run.outcomes.values()])
    V = (run.outcomes["r1c1"].centroids - X.mean(axis=0)) / X.std(axis=0)
    apart = cdist(V, V, "sqeuclidean") + np.diag(np.full(k, np.inf))
    report = said(run.outcomes["r3c1"])
    assert report["partition_coefficient"] == pytest.approx((U**2).sum() / len(Z))
    compactness = (U**2 * cdist(Z, V, "sqeuclidean")).sum()
    xie_beni = compactness / (len(Z) * apart.min())
    assert report["xie_beni"] == pytest.approx(xie_beni, rel=1e-9)
    told = {of: report[of] for of in expected(Z, labels)}
    assert told == pytest.approx(expected(Z, labels), rel=1e-9)


def test_figures_of_clusters_without_rows_or_of_one() -> None:
    X = blobs(90, 2, 2, 1)
    X[0] = 40.0, 40.0
    start = ((0.0, 0.0), (90.0, -90.0), (40.0, 40.0), (5.0, 5.0))
    run, Z, labels = of_rows(
        X, n_clusters=4, init="given", initial_centroids=start, tol=1e-2
    )
    assert 1 in np.bincount(labels)
    report = said(run.outcomes["r1c1"])
    assert report["n_clusters"] == len(np.unique(labels))
    told = {of: report[of] for of in expected(Z, labels)}
    assert told == pytest.approx(expected(Z, labels), rel=1e-9)


# Lies about the closing sums


def one_more(s: Any) -> dict[str, Any]:
    """Return the fields of a task that moves the centroids after they have converged.

    The leader says with its last sums that they are not needed. Their total is a true
    one all the same, around the last centroids.
    """
    last = sent_packets(s, messages.Sums.kind)[-len(s.session.slots) :]
    given = [packet.read([messages.Sums]) for packet in last]
    assert given[0].stop
    number = s.recall("r2c1", messages.Centroids).number
    return {
        "updates": np.array([[number + 1, given[0].round, given[0].attempt]]),
        "cohorts": np.ones((1, len(given)), np.uint8),
        "totals": add_tagged_shares(each.words for each in given)[None],
    }


@pytest.mark.parametrize("kind", [messages.Gather, messages.ReportDigest])
def test_who_has_labelled_its_rows_moves_its_centroids_no_more(kind: Any) -> None:
    s = session(tol=0.05)
    s.play_until(kind)
    lie = altered(s, "r2c1", lambda _: one_more(s))
    with pytest.raises(ProtocolFailed, match="updates after labelling"):
        s.answer("r2c1", lie)


# Split columns


def of_columns(
    X: FloatArray, **params: Any
) -> tuple[SimulationResult, FloatArray, IntArray]:
    run = start_session(X, columns=True, **params).run_to_end()
    spread = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return run, Z, run.outcomes["r1c2"].labels


COLUMNS: dict[str, dict[str, Any]] = {
    "cmeans": {},
    "fuzzy": {**FUZZY, "max_iter": 300, "tol": 1e-3},
}


@pytest.mark.thorough
@pytest.mark.parametrize(("case", "k"), in_turn(list(product(COLUMNS, SETS)), [3, 7]))
def test_figures_of_split_columns_are_scikit_learns(
    case: tuple[str, str], k: int
) -> None:
    how, name = case
    run, Z, labels = of_columns(load(name)[:600], n_clusters=k, **COLUMNS[how])
    wanted = expected(Z, labels)
    of = ("inertia", "calinski_harabasz")
    for outcome in run.outcomes.values():
        report = said(outcome)
        told = {name: report[name] for name in of}
        assert told == pytest.approx({name: wanted[name] for name in of}, rel=1e-9)
        assert report["n_iter"] == report["n_updates"]
        assert report["converged"] or report["n_iter"] == 300
        assert report["davies_bouldin"] is report["silhouette"] is None
    rounded = {name: float(f"{report[name]:.6g}") for name in of}
    assert {name: getattr(run.figures[0], name) for name in of} == rounded


@pytest.mark.parametrize("how", COLUMNS)
def test_a_run_over_columns_that_max_iter_ends_has_figures(how: str) -> None:
    X = np.random.default_rng(1).normal(size=(400, 6))
    params = {**COLUMNS[how], "max_iter": 1, "init": "random_rows"}
    run, Z, labels = of_columns(X, n_clusters=4, **params)
    report, wanted = said(run.outcomes["r1c2"]), expected(Z, labels)
    assert not report["converged"]
    for name in ("inertia", "calinski_harabasz"):
        assert report[name] == pytest.approx(wanted[name], rel=1e-9)


def test_unpublished_columns_are_not_asked_for_their_scatter() -> None:
    run, _, _ = of_columns(load("wine"), n_clusters=3, publish="nothing")
    assert not run.figures
    assert said(run.outcomes["r1c1"])["inertia"] is None
    params = Llf(n_clusters=3, publish="nothing")
    stage = catalogue.protocol("llf").stages(params, Layout.lattice(1, 3))[-1]
    assert messages.Scatter not in stage.tasks


def test_figures_of_other_labels_than_the_result_are_refused() -> None:
    s = columns_session("cmeans")
    s.run_to_end()
    result = packets.parse(s.final_step.results["r1c2"]).read([messages.GroupLabels])
    other = dict(result) | {"labels": np.roll(result.labels, 1)}
    lie = messages.GroupLabels.model_validate(other)
    with pytest.raises(ProtocolFailed, match="differ from those it announced"):
        ColumnsParty().conclude(s.context("r1c2"), lie, s.data["r1c2"])
