"""Clusters are numbered by published size; published centroids break ties."""

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from support.tables import cut, cut_columns, within

from clustering_protocols import simulation
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.llf import LosslessFederated as Llf
from clustering_protocols.protocols.omnifc import OmniFC
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.simulation import SimulationResult
from clustering_protocols.terms.terms import Layout

SIZES = (24, 60, 36)
CENTRES = np.array([[20.0, -20.0], [0.0, 20.0], [-20.0, -5.0]])
ROWS, COLUMNS = Layout.lattice(3), Layout.lattice(1, 3)
FEW = {"small_cohorts": "allow"}


def blobs(
    seed: int = 0, sizes: tuple[int, ...] = SIZES
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return CENTRES[truth] + rng.normal(size=(len(truth), 2)), truth


def run_rows(params: Any, X: np.ndarray, seed: int = 1) -> SimulationResult:
    data = cut(X, ROWS)
    said = within(-60.0, 60.0, data, ROWS)
    return simulation.run(params, ROWS, data, seed, dictionary=said)


def run_columns(params: Any, X: np.ndarray) -> SimulationResult:
    data = cut_columns(np.hstack([X, X + X[:, ::-1], X]), COLUMNS)
    return simulation.run(params, COLUMNS, data, 1)


def labels_of(run: SimulationResult, *, rows: bool) -> np.ndarray:
    found = [outcome.labels for outcome in run.outcomes.values()]
    return np.concatenate(found) if rows else found[0]


@pytest.mark.parametrize(
    ("params", "rows"),
    [
        (DataCollaboration(n_clusters=3, dimensions="all"), True),
        (OmniFC(n_clusters=3), True),
        (Llf(n_clusters=3, **FEW), True),
        (Llf(n_clusters=3, publish="nothing"), True),
        (
            Llf(n_clusters=3, algorithm="fuzzy_cmeans", output="memberships", **FEW),
            True,
        ),
        (Llf(n_clusters=3), False),
        (ProductQuantisation(n_clusters=3), False),
    ],
)
def test_the_largest_cluster_has_the_number_0_everywhere(
    params: Any, *, rows: bool
) -> None:
    X, truth = blobs()
    run = run_rows(params, X) if rows else run_columns(params, X)
    labels = labels_of(run, rows=rows)
    assert adjusted_rand_score(truth, labels) == 1.0
    assert np.bincount(labels).tolist() == sorted(SIZES, reverse=True)
    for outcome in run.outcomes.values():
        assert outcome.cluster_sizes is not None
        assert outcome.cluster_sizes.tolist() == [60, 36, 24]
        if outcome.memberships is not None:
            assert np.array_equal(outcome.memberships.argmax(axis=1), outcome.labels)
        if outcome.centroids is not None and rows:
            np.testing.assert_allclose(outcome.centroids, CENTRES[[1, 2, 0]], atol=5.0)
        assert outcome.order is None
    told = {} if run.summary is None else run.summary.arrays
    sizes = told.get("cluster_sizes", told.get("sizes"))
    assert sizes is not None
    assert sizes.tolist() == sorted(sizes.tolist(), reverse=True)
    if "clusters" in told:
        assert told["clusters"].tolist() == list(range(len(sizes)))
    if rows and len(told.get("centroids", ())):
        np.testing.assert_allclose(told["centroids"], CENTRES[[1, 2, 0]], atol=5.0)


@pytest.mark.parametrize("publish", ["centroids", "sizes", "nothing"])
@pytest.mark.quick(1)
def test_a_second_session_gives_the_same_numbers(publish: Any) -> None:
    """Whatever the start, and with two clusters of one size: by their centroids then."""
    X, _ = blobs(sizes=(45, 45, 30))
    params = Llf(n_clusters=3, publish=publish, **FEW)
    found = {
        labels_of(run_rows(params, X, seed), rows=True).tobytes() for seed in range(4)
    }
    assert len(found) == 1


@pytest.mark.parametrize(
    ("sizes", "published"),
    [((42, 43, 35), None), ((43, 44, 33), [45, 45, 35])],
    ids=["published as 40 and 45", "both published as 45"],
)
def test_exact_sizes_do_not_order_clusters_that_are_told_alike(
    sizes: tuple[int, int, int], published: list[int] | None
) -> None:
    """Otherwise the numbers would disclose which of two clusters is larger."""
    orders = set()
    for first, second in (sizes[:2], sizes[1::-1]):
        X, _ = blobs(sizes=(first, second, sizes[2]))
        run = run_rows(Llf(n_clusters=3, **FEW), X)
        assert run.summary is not None
        assert published is None or run.summary.arrays["sizes"].tolist() == published
        orders.add(tuple(np.round(run.summary.arrays["centroids"][:, 0] / 10)))
    assert len(orders) == (2 if published is None else 1)
