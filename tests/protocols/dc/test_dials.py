"""The dial `dimensions` of `dc`: exact distances, what it costs, who is asked."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.preprocessing import StandardScaler
from support.attacks import Upload, uploads
from support.tables import cut_columns

from clustering_protocols import simulation
from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.numerics.moments import measure_moments
from clustering_protocols.protocols.dc import DataCollaboration, messages, party
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.simulation import Session, Split
from clustering_protocols.terms.terms import Layout

SEED = 0
SETS = {
    "iris": load_iris().data,
    "wine": load_wine().data,
    "breast cancer": load_breast_cancer().data[:240],
    "digits": load_digits().data[:240],  # some pixels are constant, here or at a party
}
LAYOUTS = {
    "horizontal": Layout.lattice(4, 1),
    "vertical": Layout.lattice(1, 4),  # a single column each, of iris
    "mixed": Layout.lattice(2, 2),
    "ragged": Layout(slots=Layout.lattice(2, 2).slots[:-1]),
}


def params(dimensions: str = "all", **more: Any) -> DataCollaboration:
    return DataCollaboration.model_validate(
        {"n_clusters": 3, "dimensions": dimensions, **more}
    )


def split(name: str, layout: str) -> Split:
    return simulation.split(SETS[name], LAYOUTS[layout], SEED)


@pytest.mark.parametrize("layout", ["horizontal", "mixed"])
def test_distances_are_those_of_the_standardised_pooled_rows(layout: str) -> None:
    """Beside scikit-learn; of digits, whose columns are constant at some party."""
    X, parts = SETS["digits"], split("digits", layout)
    given = params(output="coordinates")
    run = simulation.run(given, parts.layout, parts.data, SEED)
    Z = np.empty((len(X), 64))
    for row, held in enumerate(parts.rows):
        coordinates = run.outcomes[parts.layout.row_group(row)[0]].coordinates
        assert coordinates is not None
        Z[held, : coordinates.shape[1]] = coordinates
        Z[held, coordinates.shape[1] :] = 0
    expected = pdist(StandardScaler().fit_transform(X))
    np.testing.assert_allclose(pdist(Z), expected, rtol=1e-9)


def test_a_single_column_takes_terms_that_say_so() -> None:
    parts = split("iris", "vertical")
    with pytest.raises(ProtocolFailed, match=r"One column alone.*dimensions 'all'"):
        simulation.run(params("all_but_one"), parts.layout, parts.data, SEED)
    outcomes = simulation.run(params(), parts.layout, parts.data, SEED).outcomes
    assert "one dimension" in str(outcomes["r1c1"].report["warning"])


def at_the_upload(given: DataCollaboration, parts: Split, **more: Any) -> Session:
    running = Session(given, parts.layout, parts.data, SEED, **more)
    running.play_until(messages.Project)
    return running


SHARES = {("wine", "mixed"): 0.55, ("iris", "mixed"): 0.3, ("wine", "vertical"): 0.4}
"""With one dimension less, no more than so many of a party's rows, in the mean."""


@pytest.mark.threat(104)
@pytest.mark.parametrize(("name", "layout"), SHARES)
def test_an_analyst_with_one_party_rebuilds_all_rows_or_a_share(
    name: str, layout: str
) -> None:
    found = {d: rebuilt(name, layout, d) for d in ("all_but_one", "all")}
    assert found["all"] == 1.0
    assert found["all_but_one"] <= SHARES[name, layout]


def guess_rows(running: Session, slot: str, upload: Upload) -> FloatArray:
    """Regress the rows on the upload, as an analyst with the anchors of a colluder."""
    context = replace(running.context(slot), memory=running.answer(slot).memory)
    own = measure_moments(running.data[slot])
    anchors = party._anchors(
        context, running.session.params, own
    )  # any member has them
    guess: FloatArray = (
        LinearRegression().fit(upload.anchors, anchors).predict(upload.rows)
    )
    return guess


def rebuilt(name: str, layout: str, dimensions: str) -> float:
    """Return the share of rows within 10 % of the truth."""
    given, parts = params(dimensions), split(name, layout)
    running = at_the_upload(given, parts)
    shares = []
    for slot, upload in uploads(given, parts, SEED).items():
        scaler = StandardScaler().fit(upload.truth)
        truth = scaler.transform(upload.truth)
        error = scaler.transform(guess_rows(running, slot, upload)) - truth
        far = np.linalg.norm(error, axis=1) > 0.1 * np.linalg.norm(truth, axis=1)
        shares.append(1 - far.mean())
    return float(np.mean(shares))


@pytest.mark.parametrize("name", ["wine", "breast cancer"])
def test_the_self_check_reports_the_known_anchor_attack(name: str) -> None:
    given, parts = params("all_but_one"), split(name, "horizontal")
    running = at_the_upload(given, parts)
    upload = uploads(given, parts, SEED)["r1c1"]
    guess = guess_rows(running, "r1c1", upload)
    r2 = r2_score(upload.truth, guess, multioutput="raw_values")
    notes = running.answer("r1c1").notes
    assert notes["  features, largest R²"] == pytest.approx(r2.max(), abs=1e-6)
    assert notes["  features, median R²"] == pytest.approx(np.median(r2), abs=1e-6)


def told(given: DataCollaboration, parts: Split, **choices: Any) -> tuple[str, str]:
    answer = at_the_upload(given, parts, choices={"r1c1": choices}).answer("r1c1")
    return answer.notes.get("  left out", ""), answer.asks


def test_a_party_is_asked_when_over_half_its_rows_are_rebuilt() -> None:
    parts = split("wine", "mixed")
    sentence, asks = told(params(), parts)
    assert sentence.startswith("nothing (dimensions 'all'): an analyst with one party")
    assert "rebuilds 100.0% of your rows" in sentence
    less, _ = told(params("all_but_one"), parts)
    own = StandardScaler().fit_transform(SETS["wine"])[parts.rows[0]][
        :, parts.columns[0]
    ]
    variances = np.linalg.svd(own - own.mean(axis=0), compute_uv=False) ** 2
    lost = variances[-1] / variances.sum()
    assert f", {lost:.1%} of the variance of your rows" in less
    shares = [
        float(said) for said in re.findall(r"([0-9.]+)% of your rows", sentence + less)
    ]
    assert shares[0] == 100
    assert shares[1] == pytest.approx(shares[2], abs=15)  # of other anchors
    assert sentence.split(": ", 1)[1] in asks
    assert "--choice rebuild_limit=1" in asks


def test_a_stated_limit_replaces_the_question_or_refuses() -> None:
    parts = split("wine", "mixed")
    assert told(params(), parts, rebuild_limit=1)[1] == ""
    with pytest.raises(GuardRefused, match=r"'rebuild_limit' is 90\.0%"):
        told(params(), parts, rebuild_limit=0.9)


@pytest.mark.parametrize("columns", [[0], [0, 0]], ids=["single", "twice the same"])
def test_a_party_of_one_dimension_is_asked_before_sending_all(
    columns: list[int],
) -> None:
    X, layout = SETS["iris"], Layout.lattice(1, 2)
    data = cut_columns(np.hstack([X[:, columns], X[:, 1:]]), layout, [len(columns), 3])
    running = Session(params(), layout, data, SEED)
    running.play_until(messages.Project)
    answer = running.answer("r1c1")
    assert "would be refused: they have one dimension" in answer.notes["  left out"]
    assert "would be refused" in answer.asks
