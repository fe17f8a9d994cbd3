"""`llf` over split columns: its default start, what a party measures and refuses."""

from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from support.attacks import looks_like_noise, sent_packets
from support.lies import altered

from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.engine import packets
from clustering_protocols.protocols.llf import columns_analyst, columns_party, messages
from clustering_protocols.protocols.llf.maths import (
    choose_sample,
    fewest_rows_per_start,
)
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.shared_stages.alignment.digests import RowOrder
from clustering_protocols.shared_stages.starts.messages import StartCentroids
from clustering_protocols.simulation import Session
from tests.protocols.llf.llf_sessions import columns_session, start_session


def test_distances_are_measured_at_most_once_after_max_iter() -> None:
    s = columns_session("cmeans", max_iter=2, tol=0.0)
    s.play_until(messages.MeasureDistances, 3)
    own = s.recall("r1c2", messages.OwnCentroids)
    s.memories["r1c2"] = s.memories["r1c2"].remember(
        [own.model_copy(update={"number": 3})]
    )
    more = altered(s, "r1c2", lambda _: {"number": 4})
    with pytest.raises(ProtocolFailed, match="more updates than max_iter"):
        s.answer("r1c2", more)
    s.memories["r1c2"] = s.memories["r1c2"].remember([own])
    assert s.run_to_end().outcomes["r1c2"].report["n_updates"] == 2


def test_the_bound_of_distances_is_tight() -> None:
    s = columns_session("cmeans", 1, 9.0, scaling="none")
    farthest = 6 * 18.0**2  # from one corner to the other
    bound = columns_party.build_distance_encoding(s.session).bound
    assert farthest < bound < 1.02 * farthest


def test_distances_beyond_the_bound_are_refused() -> None:
    far = {"init": "given", "initial_centroids": ((1e3,) * 6, (0.0,) * 6, (1.0,) * 6)}
    s = columns_session("cmeans", 1, 9.0, scaling="none", **far)
    with pytest.raises(GuardRefused, match="start the centroids within the data"):
        s.answer("r1c2")


def far_clusters() -> FloatArray:
    """Return seven clusters so far apart that a start with two in one never leaves it."""
    centres = 30.0 * np.vstack([np.eye(3), -np.eye(3), np.zeros((1, 3))])
    rows = np.random.default_rng(5).normal(size=(7, 30, 3))
    return (centres[:, None] + rows).reshape(-1, 3)


def started(X: FloatArray, k: int, seed: int = 0, **more: Any) -> Session:
    widths = [X.shape[1] - 2, 1, 1]
    return start_session(X, columns=True, sizes=widths, seed=seed, n_clusters=k, **more)


def test_far_clusters_are_found_as_by_pooled_k_means() -> None:
    X = far_clusters()
    best = KMeans(7, n_init=10, random_state=0).fit(StandardScaler().fit_transform(X))
    found = {
        init: [
            started(X, 7, seed, init=init).run_to_end().figures[0].inertia or 0.0
            for seed in range(3)
        ]
        for init in ("careful", "random_rows")
    }
    assert found["careful"] == pytest.approx([best.inertia_] * 3, rel=1e-5)
    assert max(found["random_rows"]) > 1.5 * best.inertia_, "or the set shows nothing"


def test_rows_follow_from_differences_up_to_a_motion() -> None:
    X = StandardScaler().fit_transform(load_wine().data)
    sample = choose_sample(*X.shape)
    groups = sample.groups
    means = np.array([X[groups == g].mean(axis=0) for g in range(sample.n_groups)])
    D = np.square(X[:, None] - means).sum(axis=2)
    shift = np.random.default_rng(0).normal(0, 1e3, size=(len(X), 1))
    shifted = D + shift
    found = columns_analyst.rows_from_differences(
        shifted - shifted[:, :1], groups, 1e-12
    )
    np.testing.assert_allclose(pdist(found), pdist(X), atol=1e-6)


@pytest.mark.parametrize("n", [2, 7, 24, 100, 50_000])
@pytest.mark.parametrize("columns", [3, 30, 3000])
def test_no_group_is_a_row(n: int, columns: int) -> None:
    sample = choose_sample(n, columns)
    sizes = np.bincount(sample.groups)
    assert len(sizes) == sample.n_groups
    assert sizes.min() >= min(5, n // 2)
    assert sample.n_rows <= n


def test_an_outlier_starts_no_cluster_of_its_own() -> None:
    Y = np.vstack([np.random.default_rng(0).normal(size=(60, 2)), [[900.0, 900.0]]])
    labels = columns_analyst.partition_rows(Y, 2, np.random.default_rng(1))
    assert np.bincount(labels).min() == fewest_rows_per_start(61, 2) == 5


def test_the_start_is_the_mean_of_the_rows_that_were_named() -> None:
    X = far_clusters()
    s = started(X, 4)
    s.play_until(messages.StartFrom)
    labels = packets.parse(s.open.tasks["r1c2"]).arrays["labels"]
    s.play_round()
    Z = StandardScaler().fit_transform(X)[s.recall("r1c2", RowOrder).order]
    means = np.array([Z[labels == c].mean(axis=0) for c in range(4)])
    V = s.recall("r1c2", StartCentroids).centroids
    np.testing.assert_allclose(V, means[:, 1:2], atol=1e-12)


@pytest.mark.threat(75, 90)
def test_distances_to_groups_are_noise_and_shifted_in_each_row() -> None:
    s = started(np.random.default_rng(0).normal(size=(20_000, 3)), 4, max_iter=1)
    s.run_to_end()
    sent = sent_packets(s, messages.GroupDistances.kind)
    words = [packet.arrays["words"] for packet in sent]
    assert len(words) == 3
    for share in words:
        looks_like_noise(share)
    total = np.sum(words, axis=0, dtype=np.uint64)
    looks_like_noise(total[:, 0])
    assert np.unique(total[:, 0]).size == len(total)
