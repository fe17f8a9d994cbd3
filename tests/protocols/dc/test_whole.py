"""The rest of dc: new rows, coordinates, empty cells, choices of a party, many rows."""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_wine, make_circles
from sklearn.decomposition import PCA, TruncatedSVD

from clustering_protocols import simulation
from clustering_protocols.common import limits
from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.contract import Outcome
from clustering_protocols.contract.sizing import Extent
from clustering_protocols.numerics import row_blocks
from clustering_protocols.numerics.data_source import MatrixSource, matrix
from clustering_protocols.numerics.scores import adjusted_rand
from clustering_protocols.protocols.dc import DataCollaboration, protocol
from clustering_protocols.terms.terms import Layout


def of_wine(
    layout: Layout, **params: Any
) -> tuple[simulation.Split, dict[str, Outcome]]:
    parts = simulation.split(load_wine().data, layout, SEED)
    run = simulation.run(DataCollaboration(**params), layout, parts.data, SEED)
    return parts, run.outcomes


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_predicted_labels_are_those_of_the_session_and_of_the_pooled_model(
    load: Any,
) -> None:
    X = load().data
    rng = np.random.default_rng(SEED)
    new = rng.permutation(len(X)) < len(X) // 4
    parts = simulation.split(X[~new], Layout.lattice(3), SEED)
    params = DataCollaboration(n_clusters=2, predictor=True)
    run = simulation.run(params, parts.layout, parts.data, SEED)
    mean, spread = X[~new].mean(axis=0), X[~new].std(axis=0)
    pooled = KMeans(2, n_init=10, random_state=0).fit((X[~new] - mean) / spread)
    expected = pooled.predict((X[new] - mean) / spread)
    for slot, outcome in run.outcomes.items():
        names = [parts.data[slot].columns.index(f"x{j}") for j in range(X.shape[1])]
        order = np.argsort(names)
        assert outcome.predict is not None
        assert np.array_equal(outcome.predict(parts.data[slot]).labels, outcome.labels)
        found = outcome.predict(MatrixSource(X[new][:, order])).labels
        assert adjusted_rand(expected, found) >= 0.95


def test_without_a_predictor_nothing_of_the_private_map_is_kept() -> None:
    outcome = of_wine(Layout.lattice(2), n_clusters=2)[1]["r1c1"]
    assert outcome.predict is None
    assert outcome.centroids is None


def labels_are_nearest(outcome: Outcome) -> bool:
    assert outcome.coordinates is not None
    assert outcome.centroids is not None
    away = outcome.coordinates[:, None, :] - outcome.centroids
    return np.array_equal(np.square(away).sum(axis=2).argmin(axis=1), outcome.labels)


@pytest.mark.parametrize("algorithm", ["kmeans", "spectral"])
def test_coordinates_are_let_out_where_the_terms_say_so(algorithm: Any) -> None:
    given = {"output": "coordinates", "algorithm": algorithm}
    _, outcomes = of_wine(Layout.lattice(2, 2), n_clusters=3, **given)
    assert labels_are_nearest(outcomes["r2c1"])


def answer(choices: dict[str, Any], params: dict[str, Any]) -> Outcome:
    parts = simulation.split(load_wine().data, Layout.lattice(2), SEED)
    session = simulation.Session(
        DataCollaboration(**params),
        parts.layout,
        parts.data,
        SEED,
        choices={"r1c1": choices},
    )
    session.run_to_end()
    # without the rows, as where a result is read again later
    known = (session.journals["r1c1"], session.memories["r1c1"])
    return session.party("r1c1").conclude(
        *known, session.final_step.results["r1c1"], None
    )


def first_rows() -> Any:
    parts = simulation.split(load_wine().data, Layout.lattice(2), SEED)
    return matrix(parts.data["r1c1"])


def test_a_party_brings_a_transformer_of_its_own() -> None:
    params = {"n_clusters": 3, "scaling": "center"}
    own = answer({"transformer": TruncatedSVD(12).fit(first_rows())}, params)
    assert own.report["dimensions sent"] == 12
    assert adjusted_rand(answer({}, params).labels, own.labels) >= 0.95


def test_a_full_width_transformer_needs_permission() -> None:
    full = {"transformer": PCA(13).fit(first_rows())}
    with pytest.raises(GuardRefused, match="allow_full_width"):
        answer(full, {"n_clusters": 3})
    assert answer({**full, "allow_full_width": True}, {"n_clusters": 3}).labels.size


SEED = 4
LAYOUT = Layout.lattice(2)
SPECTRAL = DataCollaboration(n_clusters=2, algorithm="spectral", dimensions="all")


@pytest.fixture
def few() -> Iterator[None]:
    """More than 1,000 rows are many, and 300 stand for them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "MANY_IN_A_GRAPH", 1_000)
        patch.setattr(limits, "N_REPRESENTATIVES", 300)
        yield


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("n", [1_000, 1_001])
def test_a_result_says_when_small_groups_of_rows_were_clustered(n: int) -> None:
    X, y = make_circles(n, factor=0.4, noise=0.05, random_state=0)
    parts = simulation.split(X, LAYOUT, SEED)
    run = simulation.run(SPECTRAL, parts.layout, parts.data, SEED)
    said = {outcome.report.get("approximation") for outcome in run.outcomes.values()}
    if n == 1_000:
        assert said == {None}
    else:
        assert said == {
            (
                "The 1,001 rows were clustered as 300 small groups; all rows of a group "
                "have one label."
            )
        }
    for name, outcome in run.outcomes.items():
        assert adjusted_rand(y[parts.held[name]], outcome.labels) == 1.0


@pytest.mark.usefixtures("few")
def test_coordinates_are_those_of_a_rows_group() -> None:
    X, _ = make_circles(1_500, factor=0.4, noise=0.05, random_state=0)
    parts = simulation.split(X, LAYOUT, SEED)
    params = SPECTRAL.model_copy(update={"output": "coordinates"})
    run = simulation.run(params, parts.layout, parts.data, SEED)
    assert all(map(labels_are_nearest, run.outcomes.values()))
    assert run.summary.starts.max() < len(X)
    assert run.summary.starts.max() >= 300  # numbers of rows, not of groups


class Traced(simulation.Session):
    most = 0

    @contextmanager
    def measure_time(self, role: str) -> Iterator[None]:
        if role != simulation.ANALYST:
            yield
            return
        tracemalloc.start()
        yield
        self.most = max(self.most, tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("algorithm", ["kmeans", "spectral"])
def test_a_step_stays_below_the_stated_memory(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a copy of the common space."""
    monkeypatch.setattr(row_blocks, "BLOCK_ITEMS", 1 << 16)
    monkeypatch.setattr(limits, "MANY_ROWS", 50_000)
    monkeypatch.setattr("clustering_protocols.algorithms.kmeans.RACE_ROWS", 1 << 12)
    params = SPECTRAL.model_copy(
        update={"algorithm": algorithm, "n_init": 2, "max_iter": 5}
    )
    n, width = 60_000, 40
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, width)) + 8.0 * rng.integers(2, size=n)[:, None]
    parts = simulation.split(X, LAYOUT, SEED)
    session = Traced(params, parts.layout, parts.data, seed=SEED)
    session.run_to_end()
    extent = Extent(rows=n, features=width, layout=LAYOUT)
    of_blocks = 10 * 8 * row_blocks.BLOCK_ITEMS
    assert session.most < protocol.DcSizes().memory_bytes(params, extent) + of_blocks
    assert session.most < 8 * n * width
