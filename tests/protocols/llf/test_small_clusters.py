"""Over split rows, clusters of few rows are found, and their centroids do not move."""

from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from clustering_protocols import simulation
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.protocols.llf import (
    LosslessFederated as Llf,
    reference as pooled,
)
from clustering_protocols.protocols.llf.maths import move_centroids
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.shared_stages.starts import clusters
from clustering_protocols.terms.terms import Layout
from tests.protocols.llf.llf_sessions import start_session, unaudited

LAYOUT = Layout.lattice(3)


def three_groups(few: int) -> FloatArray:
    """Return 20 rows near -5, as many near 5, and a few near 0."""
    rng = np.random.default_rng(1)
    groups = [
        rng.normal(at, 0.1, size=(n, 2)) for at, n in ((-5, 20), (5, 20), (0, few))
    ]
    return rng.permutation(np.vstack(groups))


START = ((-4.0, -4.0), (4.0, 4.0), (0.5, 0.5))
GIVEN: dict[str, Any] = {
    "n_clusters": 3,
    "scaling": "none",
    "init": "given",
    "initial_centroids": START,
}


@pytest.mark.parametrize(
    ("few", "more", "stays"),
    [
        (9, {}, True),
        (10, {}, False),
        (3, {"min_cluster_rows": 4}, True),
        (4, {"min_cluster_rows": 4}, False),
    ],
)
def test_a_cluster_of_few_rows_keeps_its_centroid(
    few: int, more: dict[str, Any], *, stays: bool
) -> None:
    X, given = three_groups(few), GIVEN | more
    run = start_session(X, widest=20.0, seed=1, **given).run_to_end()
    for outcome in run.outcomes.values():
        assert outcome.centroids is not None
        assert (outcome.centroids[2].tolist() == list(START[2])) == stays
        assert outcome.cluster_sizes is not None
        assert outcome.cluster_sizes.tolist() == [20, 20, few]
    reference = pooled.run_pooled(Llf(**given), X, run.trace)
    found = np.concatenate([run.outcomes[slot].labels for slot in LAYOUT.names])
    assert np.array_equal(found, reference.labels)
    assert (reference.centroids[2].tolist() == list(START[2])) == stays


def test_an_empty_cluster_is_nudged_and_a_small_one_is_not() -> None:
    V, nudge = np.array([[0.0], [4.0], [8.0]]), np.full((3, 1), 0.25)
    sums, weights = np.array([[20.0], [12.0], [0.0]]), np.array([10.0, 2.0, 0.0])
    centroids, moved = move_centroids(V, sums, weights, nudge, np.ones(1), 3)
    assert centroids.ravel().tolist() == [2.0, 4.0, 8.25]
    assert moved == 2.0


def test_a_fuzzy_centroid_moves_however_little_belongs_to_it() -> None:
    given = Llf(n_clusters=2, algorithm="fuzzy_cmeans", min_cluster_rows=1000)
    assert given.min_rows_to_move_centroid == 1


def _unequal(seed: int) -> tuple[FloatArray, IntArray]:
    """Return clusters of 800, 100, 40 and 20 rows, five deviations apart or more."""
    rng = np.random.default_rng(seed)
    while True:
        centres = rng.uniform(-6, 6, size=(4, 2))
        if pdist(centres).min() > 5:
            break
    classes = np.repeat(np.arange(4), [800, 100, 40, 20])
    return centres[classes] + rng.normal(size=(960, 2)), classes


@pytest.mark.parametrize("drawn", [17, 97, 101])
@pytest.mark.quick(1)
def test_clusters_of_unequal_sizes_are_found(drawn: int) -> None:
    """If parties described only k clusters, the largest was split in nearly every case."""
    X, classes = _unequal(drawn)
    agreed = []
    for seed in range(5):
        parts = simulation.split(X, LAYOUT, seed)
        run = simulation.run(Llf(n_clusters=4), LAYOUT, parts.data, seed)
        labels = simulation.compare_with_pooled(run, X, parts).labels
        agreed.append(adjusted_rand_score(classes, labels))
    assert np.sum(np.array(agreed) > 0.95) >= 4


def test_a_party_with_fewer_rows_than_clusters_takes_part() -> None:
    X, _ = make_blobs(244, 3, centers=6, random_state=0)
    lifted = unaudited(LAYOUT)
    run = start_session(
        X, sizes=[120, 120, 4], choices=lifted, n_clusters=6
    ).run_to_end()
    assert [len(run.outcomes[slot].labels) for slot in LAYOUT.names] == [120, 120, 4]


@pytest.mark.parametrize("n_rows", [5, 13, 44, 300])
def test_each_described_cluster_has_five_rows(n_rows: int) -> None:
    rng = np.random.default_rng(n_rows)
    X = np.vstack([rng.normal(size=(n_rows - 2, 3)), rng.normal(90, 1, size=(2, 3))])
    own = clusters.local_centroids(X, 4, KeyedStream(bytes(32)))
    assert own.centroids.shape == (8, 3), "however many rows a party has"
    described = own.sizes > 0
    assert own.sizes[described].min() >= 5
    assert abs(own.sizes.sum() - n_rows) <= 2 * described.sum()
    labels = clusters.fill_clusters(X, X[: max(1, n_rows // 5)])
    assert np.bincount(labels).min() >= 5
