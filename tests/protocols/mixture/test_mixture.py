"""Components equal scikit-learn's; elongated clusters are found; lies are refused."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn import datasets
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from support.repeats import in_turn

from clustering_protocols import result_warnings, simulation
from clustering_protocols.common.errors import CoterieError, ProtocolFailed
from clustering_protocols.contract import row_history
from clustering_protocols.contract.row_history import count_unknowns
from clustering_protocols.numerics.data_source import MatrixSource, matrix
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.protocols.mixture import (
    Mixture,
    bound,
    messages,
    model as em,
    roles,
)
from clustering_protocols.protocols.mixture.model import Columns
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.shared_stages.starts.messages import StartCentroids
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.schema import numeric_schema
from clustering_protocols.terms.sections import Evaluation
from clustering_protocols.terms.terms import Layout

LAYOUT = Layout.lattice(3)
DIGITS = datasets.load_digits().data
SETS = {
    "iris": (datasets.load_iris().data, 3),
    "wine": (datasets.load_wine().data, 3),
    "breast cancer": (datasets.load_breast_cancer().data, 2),
    "diabetes": (datasets.load_diabetes().data, 2),
    "digits": (DIGITS[:, DIGITS.std(axis=0) > 5], 4),
    "linnerud": (np.tile(datasets.load_linnerud().data, (9, 1)), 2),
}


class Played(NamedTuple):
    run: simulation.SimulationResult
    X: FloatArray

    def all_parties(self, name: str) -> Any:
        return np.concatenate([getattr(o, name) for o in self.run.outcomes.values()])


def played(params: Mixture, X: FloatArray, **sections: Any) -> Played:
    parts = simulation.split(X, LAYOUT, 0)
    run = simulation.run(params, LAYOUT, parts.data, 0, **sections)
    return Played(run, np.vstack([matrix(rows) for rows in parts.data.values()]))


@pytest.fixture
def many_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small tables make all updates; other tests cover what these disclose."""
    monkeypatch.setattr(row_history, "MARGIN", 1e-6)


@pytest.mark.usefixtures("many_updates")
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "kind"), in_turn(list(SETS), ["full", "tied", "diag", "spherical"])
)
def test_components_are_those_of_scikit_learn(name: str, kind: Any) -> None:
    X, k = SETS[name]
    X = X + np.random.default_rng(0).normal(size=X.shape) * 0.05 * X.std(axis=0)
    session = played(Mixture(n_clusters=k, covariance_type=kind), X)
    memory = session.run.trace.memories["r2c1"]
    found, start = memory.get(messages.Components), memory.get(StartCentroids)
    assert found is not None
    assert start is not None
    rows, V = session.X, start.centroids
    Z = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    precisions = 1 / np.maximum(1 - V.var(axis=0), 0.1)
    width = Z.shape[1]
    given = {
        "full": np.tile(np.diag(precisions), (k, 1, 1)),
        "tied": np.diag(precisions),
        "diag": np.tile(precisions, (k, 1)),
        "spherical": np.full(k, 1 / np.mean(1 / precisions)),
    }
    expected = GaussianMixture(
        k,
        covariance_type=kind,
        weights_init=np.full(k, 1 / k),
        means_init=V,
        precisions_init=given[kind],
    ).fit(Z)
    spread = {
        "full": lambda C: C,
        "tied": lambda C: C[None],
        "diag": lambda C: C[:, :, None] * np.eye(width),
        "spherical": lambda C: C[:, None, None] * np.eye(width),
    }[kind](expected.covariances_)
    assert found.number - 1 == expected.n_iter_
    assert found.converged
    assert found.lower_bound == pytest.approx(expected.lower_bound_, abs=1e-9)
    for own, theirs in (
        (found.weights, expected.weights_),
        (found.means, expected.means_),
        (em.as_matrices(kind, found.covariances, width), spread),
    ):
        np.testing.assert_allclose(own, theirs, rtol=1e-9, atol=1e-9)
    figures = session.run.figures[0]
    assert figures.bic == pytest.approx(expected.bic(Z), rel=1e-5)
    assert figures.aic == pytest.approx(expected.aic(Z), rel=1e-5)
    labels, U = session.all_parties("labels"), session.all_parties("memberships")
    assert adjusted_rand_score(expected.predict(Z), labels) == 1
    surest = expected.predict_proba(Z).max(axis=1)
    np.testing.assert_allclose(U.max(axis=1), surest, atol=1e-8)


def elongated(n: int = 1500) -> tuple[FloatArray, FloatArray]:
    """Return three parallel clusters, three times as long as they are apart."""
    rng = np.random.default_rng(3)
    y = rng.integers(3, size=n)
    rows = rng.normal(size=(n, 2)) * [4.0, 0.25] + np.outer(y, [3.2, 1.2])
    turn = np.array([[np.cos(0.6), -np.sin(0.6)], [np.sin(0.6), np.cos(0.6)]])
    return rows @ turn, y


def test_elongated_clusters_are_found_where_k_means_finds_none() -> None:
    X, y = elongated()
    session = played(Mixture(n_clusters=3, tol=1e-5), X)
    labels = session.all_parties("labels")
    # rows are dealt out in an order, and so are columns: found by the sums of rows
    y = y[np.argsort(X.sum(axis=1))][np.argsort(np.argsort(session.X.sum(axis=1)))]
    plain = KMeans(3, n_init=10, random_state=0).fit_predict(session.X)
    assert adjusted_rand_score(y, plain) <= 0.5
    assert adjusted_rand_score(y, labels) >= 0.95


def test_the_best_run_is_that_of_least_bic() -> None:
    X, _ = elongated()
    params = Mixture(n_clusters=4)
    runs = Evaluation(n_clusters=(1, 2, 3, 4), choose="bic")
    session = played(params, X, evaluation=runs)
    bics = [figures.bic or 0.0 for figures in session.run.figures]
    assert session.run.chosen == int(np.argmin(bics))
    for figures in session.run.figures:
        assert (figures.icl or 0.0) >= (figures.bic or 0.0)
        assert 0 <= (figures.entropy or 0.0) <= 1


LIES = {
    "other rows": lambda vector: vector * 1.01,
    "a row that is none": lambda vector: vector + np.eye(len(vector))[0],
    "a mean that is moved": lambda vector: vector + 3 * np.eye(len(vector))[3],
    "a larger variance": lambda vector: vector + 3 * np.eye(len(vector))[9],
}


@pytest.mark.threat(231)
@pytest.mark.parametrize("lie", LIES)
def test_a_share_that_is_not_of_the_pooled_rows_is_refused(
    lie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = roles.RoundView.sum_rows

    def sum_rows(place: Any, components: Any, data: Any) -> Any:
        words = honest(place, components, data)
        if place.context.slot.name != "r3c1" or components.number != 2:
            return words
        code = place.shape.encoding(components, place.scale, place.n_rows)
        return code.encode(LIES[lie](code.decode(words)))

    monkeypatch.setattr(roles.RoundView, "sum_rows", sum_rows)
    with pytest.raises(ProtocolFailed, match="whose moments were pooled"):
        played(Mixture(n_clusters=3), elongated()[0])


def test_a_component_of_few_rows_keeps_its_place() -> None:
    X, _ = elongated()
    params = Mixture(
        n_clusters=2,
        init="given",
        initial_centroids=((0.0, 0.0), (500.0, 500.0)),
        max_iter=3,
    )
    session = played(params, X)
    outcome = session.run.outcomes["r1c1"]
    assert outcome.centroids is not None
    np.testing.assert_allclose(outcome.centroids[1], 500.0, rtol=1e-9)
    assert outcome.covariances is not None
    assert (np.linalg.eigvalsh(outcome.covariances) > 0).all()


def test_new_rows_get_memberships_beside_rows_with_gaps() -> None:
    names, drop = ["x1", "x0"], Preparation(missing="drop")
    terms = {"dictionary": [numeric_schema(names, -50, 50)], "preparation": [drop]}
    session = played(Mixture(n_clusters=3), elongated()[0], **terms)
    outcome = session.run.outcomes["r1c1"]
    assert outcome.predict is not None
    own = np.vstack([session.X[: len(outcome.labels)], [np.nan, 0.0]])
    placed = outcome.predict(MatrixSource(own, names, gaps=True))
    np.testing.assert_array_equal(placed.labels, [*outcome.labels, -1])
    expected = np.vstack([outcome.memberships, [[np.nan] * 3]])
    np.testing.assert_allclose(placed.memberships, expected, atol=1e-12)


def test_so_few_rows_that_no_update_fits_are_refused() -> None:
    with pytest.raises(CoterieError, match=r"compute the other parties' \d+ rows"):
        played(Mixture(n_clusters=3), elongated(18)[0])


@pytest.mark.parametrize(
    ("n_columns", "n_rows", "n_updates", "remedy"),
    [
        (4, 10**9, 0, "more fields or levels"),
        (8, 200_000, 1, "more fields or levels"),
        (12, 5000, 15, "more fields or levels"),
        (12, 500, 0, "more rows"),
    ],
)
def test_more_rows_of_few_patterns_allow_no_more_updates(
    n_columns: int, n_rows: int, n_updates: int, remedy: str
) -> None:
    params = Mixture(n_clusters=2)
    columns = Columns(n_columns, tuple(range(i, i + 1) for i in range(n_columns)))
    unknowns = count_unknowns(bound.bits_from_dictionary(columns), n_rows)
    assert bound.updates_that_fit([params], columns, unknowns) == n_updates
    assert bound.remedy(columns, n_rows).startswith(remedy)


@pytest.mark.parametrize(
    ("n_iter", "advice"), [(1, "allow no more"), (100, "max_iter")]
)
def test_max_iter_is_advised_only_where_it_helps(n_iter: int, advice: str) -> None:
    params = Mixture(n_clusters=2)
    figures = Figures(n_clusters=2, inertia=1.0, n_iter=n_iter, converged=False)
    [said] = result_warnings.find_result_warnings(
        params, layout=LAYOUT, report={}, figures=figures, sizes=None
    )
    assert ("raise max_iter" in said) == (advice == "max_iter")
    assert advice in said


@pytest.mark.parametrize(
    ("params", "X"),
    [
        (Mixture(n_clusters=3, tol=0.0), np.rint(elongated(1500)[0] * 10)),
        # six columns of 0 and 1 that are declared as numbers have 64 kinds of rows
        (
            Mixture(n_clusters=2, max_iter=8, tol=0.0),
            np.random.default_rng(0).integers(2, size=(3900, 6)).astype(float),
        ),
    ],
    ids=["rounded", "zeros and ones"],
)
def test_columns_that_repeat_their_values_take_fewer_updates(
    params: Mixture, X: FloatArray
) -> None:
    with pytest.raises(CoterieError, match="repeat their values"):
        played(params, X)
