"""What `dc` refuses: what would be sent as it is, a second upload, too many columns."""

from typing import Any

import numpy as np
import pytest
from sklearn.preprocessing import PolynomialFeatures

from clustering_protocols import engine, simulation
from clustering_protocols.common.errors import (
    GuardRefused,
    InvalidArray,
    ProtocolFailed,
)
from clustering_protocols.engine import packets
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.dc import DataCollaboration, messages, party
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.simulation import Session, number_rows
from clustering_protocols.terms.terms import Layout


def table(X: FloatArray) -> MatrixSource:
    return MatrixSource(X, ids=number_rows(len(X)))


FEATURES, ROWS = 3, 30
FIRST = "r1c1"
LAYOUT = Layout.lattice(2, 1)
DATA = {
    slot: table(np.random.default_rng(place).normal(size=(ROWS, FEATURES)))
    for place, slot in enumerate(LAYOUT.names)
}


def at_the_upload(**params: Any) -> Session:
    given = DataCollaboration(n_clusters=2, scaling="center", **params)
    running = Session(given, LAYOUT, DATA, seed=5)
    running.play_until(messages.Project)
    return running


def test_a_second_upload_is_refused() -> None:
    running = at_the_upload()
    task = running.open.tasks[FIRST]
    running.memories[FIRST] = running.answer(FIRST, task).memory
    with pytest.raises(ProtocolFailed, match="second upload"):
        running.answer(FIRST, task)


def given(running: Session, width: int, size: float = 1.0) -> dict[str, bytes]:
    """The answers to the open round; the first party's have this width and row size."""
    answers = {slot: running.answer(slot).contribution for slot in LAYOUT.names}
    own = packets.parse(answers[FIRST])
    r = own.arrays["anchors"].shape[0]
    rng = np.random.default_rng(9)
    wide = messages.Projections(
        rows=size * rng.normal(size=(ROWS, width)),
        anchors=rng.normal(size=(r, width)) / size,
    )
    return {**answers, FIRST: packets.write_packet(own.address, wide)}


def advance(running: Session, contributions: dict[str, bytes]) -> Any:
    here = running.open
    return engine.advance_session(
        running.agreement, here.state, here.tasks, contributions
    )


@pytest.mark.parametrize(
    ("width", "why"),
    [
        (0, "'r1c1' sent projections of no dimension"),
        (FEATURES + 1, "of 4 dimensions; it has 3 features"),
        (5000, "of 5000 dimensions; it has 3 features"),
    ],
)
def test_no_columns_and_more_than_features_are_refused(width: int, why: str) -> None:
    running = at_the_upload()
    with pytest.raises(InvalidArray, match=why):
        advance(running, given(running, width))


def test_rows_that_their_map_enlarges_too_much_are_refused() -> None:
    running = at_the_upload()
    with pytest.raises(InvalidArray, match="The common space"):
        advance(running, given(running, FEATURES, size=1e60))


@pytest.mark.parametrize(
    ("params", "own", "why"),
    [
        ({}, PolynomialFeatures(2), "makes 10 dimensions from 3 features"),
        ({"predictor": True}, PolynomialFeatures(1), "needs a linear reduction"),
    ],
)
def test_a_transformer_that_the_terms_do_not_fit_is_refused_at_home(
    params: Any, own: Any, why: str
) -> None:
    running = at_the_upload(**params)
    features = own.set_params(include_bias=own.degree > 1).fit(np.zeros((1, FEATURES)))
    party = engine.PartyEngine(
        agreement=running.agreement,
        slot=FIRST,
        entropy=running.entropies[FIRST],
        choices={"transformer": features, "allow_full_width": True},
    )
    known = (running.journals[FIRST], running.memories[FIRST])
    with pytest.raises(GuardRefused, match=why):
        party.reply(*known, running.open.tasks[FIRST], DATA[FIRST])


def run(
    data: dict[str, MatrixSource], choices: Any = None
) -> simulation.SimulationResult:
    params = DataCollaboration(n_clusters=2, scaling="center")
    layout = Layout.lattice(1, 2)
    return Session(params, layout, data, seed=5, choices=choices).run_to_end()


WIDE = table(np.random.default_rng(2).normal(size=(ROWS, FEATURES)))
ONE = np.random.default_rng(3).normal(size=(ROWS, 1))


ONE_DIMENSION = {
    "constant columns beside": np.hstack([ONE, np.full((ROWS, 2), 0.1)]),
    "multiples": np.hstack([ONE, 3 * ONE]),
}


@pytest.mark.parametrize("name", ONE_DIMENSION)
def test_data_of_one_dimension_need_explicit_permission(name: str) -> None:
    data = {"r1c1": table(ONE_DIMENSION[name]), "r1c2": WIDE}
    with pytest.raises(GuardRefused, match="one dimension"):
        run(data)
    outcomes = run(data, {"r1c1": {"allow_full_width": True}}).outcomes
    report = outcomes["r1c1"].report
    assert (report["dimensions of the data"], report["dimensions sent"]) == (1, 1)
    assert "one dimension" in report["warning"]
    assert "warning" not in outcomes["r1c2"].report


def model(coordinates: list[float], labels: list[int]) -> messages.RowGroupModel:
    return messages.RowGroupModel(
        labels=np.array(labels),
        cluster_sizes=np.array([1, 1, 1]),
        coordinates=np.array(coordinates)[:, None],
        centroids=np.array([[1.0], [2.0], [6.0]]),
        map_matrix=np.eye(1),
        map_offset=np.zeros(1),
    )


def test_labels_of_nearest_centroids_pass_also_at_ties() -> None:
    party._check_nearest(model([0.5, 2.5, 9.0, 4.0], [0, 1, 2, 1]))
    party._check_nearest(model([1.5, 1.5, 4.0], [0, 1, 2]))
    party._check_nearest(model([1.5 + 1e-12], [0]))


def test_rows_on_several_centroids_pass() -> None:
    """Three yes/no columns have fewer distinct rows than there are clusters."""
    X = np.random.default_rng(0).integers(0, 2, size=(120, 3)).astype(float)
    params = DataCollaboration(n_clusters=12, output="coordinates", dimensions="all")
    parts = simulation.split(X, Layout.lattice(3), seed=0)
    outcomes = simulation.run(params, parts.layout, parts.data, seed=0).outcomes
    assert all(outcome.coordinates is not None for outcome in outcomes.values())


@pytest.mark.parametrize(
    ("row", "label"), [(0.5, 1), (0.5, 2), (1.6, 0), (3.9, 2), (4.1, 1), (9.0, 0)]
)
def test_a_label_of_a_centroid_further_off_is_refused(row: float, label: int) -> None:
    with pytest.raises(ProtocolFailed, match="not those of the nearest"):
        party._check_nearest(model([2.0, row], [1, label]))


@pytest.mark.parametrize(
    ("n_rows", "label", "error"),
    [(ROWS, 1, ProtocolFailed), (9, 0, InvalidArray)],
)
def test_a_result_is_checked_before_it_comes_out(
    n_rows: int, label: int, error: type[Exception]
) -> None:
    running = at_the_upload()
    running.play_round()
    result = model([0.5] * n_rows, [label] * n_rows)
    with pytest.raises(error):
        party.Projector().conclude(running.context(FIRST), result, None)


def test_the_limit_counts_the_feature_that_comes_out_best() -> None:
    """One feature outweighs the others by far: it is all that is sent, and exact."""
    X = np.random.default_rng(4).normal(size=(ROWS, 2))
    X[:, 0] = 1e3 * (X[:, 0] > 0)
    data = {"r1c1": table(X), "r1c2": WIDE}

    def limited(limit: float) -> dict[str, Any]:
        return {"r1c1": {"rebuild_limit": limit}}

    with pytest.raises(GuardRefused, match=r"one feature within 10 % in 100.0%"):
        run(data, limited(0.5))
    run(data, limited(1.0))


def test_two_shares_are_counted_and_the_larger_one_limits() -> None:
    X = np.column_stack([np.arange(-5.0, 5.0), np.linspace(3.0, -2.0, 10) ** 2])
    guess = X.copy()
    guess[:, 1] += 10 * X[:, 1].std()
    found = party.score(X, guess)
    assert (found.close_rows, found.close_values, found.worst) == (0.0, 1.0, 1.0)
    assert party.score(X, X + 10 * X.std(axis=0)).worst == 0.0
