"""Whole sessions: the analyst stores the same blobs, whichever engine works for it."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import make_blobs
from support import dask_clusters
from support.repeats import some
from support.stepped import Stepped
from threadpoolctl import threadpool_limits

from analyst_service.blobs.opening import BlobPlace
from analyst_service.engines import cluster as of_cluster, dask_engine, tasks
from analyst_service.engines.cluster import Cluster
from analyst_service.engines.opening import EngineChoice
from analyst_service.engines.tasks import Task
from analyst_service.jobs import worker
from clustering_protocols import row_blocks, simulation
from clustering_protocols.algorithms import kmeans, lloyd
from clustering_protocols.contract import Params
from clustering_protocols.errors import Unavailable
from clustering_protocols.protocols.dc import DataCollaboration, factors
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.terms import Layout

LOCAL, DASK = EngineChoice(), EngineChoice(kind="dask")
SESSIONS: dict[str, tuple[Params, Layout]] = {
    "dc": (DataCollaboration(n_clusters=3, n_init=1, max_iter=3), Layout.lattice(2, 2)),
    "pqmds": (
        ProductQuantisation(n_clusters=3, n_init=1, sub_dim=2, codebook_size=30),
        Layout.lattice(1, 2),
    ),
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # a worker limits the threads of its process, which is this one: parties are here too
    with threadpool_limits(1), dask_clusters.in_this_process() as running:
        yield running


@pytest.fixture
def sent(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[list[Task]]:
    """All tasks of a step, whose blocks are small and sent where they may be."""
    seen: list[Task] = []
    submit = cluster.submit

    def noted(task: Task) -> Any:
        seen.append(task)
        return submit(task)

    monkeypatch.setattr(cluster, "submit", noted)
    monkeypatch.setattr(of_cluster, "connected", lambda *_: cluster)
    monkeypatch.setattr(dask_engine, "WORTH_SENDING", 0.0)
    monkeypatch.setattr(lloyd, "WORTH_A_THREAD", 0)
    monkeypatch.setattr(kmeans, "MANY_ROWS", 500)
    monkeypatch.setattr(row_blocks, "BLOCK_ITEMS", 3000)
    monkeypatch.setattr(factors, "_LEAST_ROWS", 64)
    monkeypatch.setenv("COTERIE_DATA_DIR", str(tmp_path))
    tasks._blobs.cache_clear()
    yield seen
    tasks._blobs.cache_clear()


def played(folder: Path, choice: EngineChoice, name: str) -> Stepped:
    params, layout = SESSIONS[name]
    X, _ = make_blobs(800, 8, centers=3, cluster_std=4.0, random_state=0)
    data = simulation.split(X, layout, 0).data
    place = BlobPlace(folder=folder / "blobs")
    session = Stepped(place, choice, params, layout, data, seed=3)
    session.to_the_end()
    return session


@pytest.mark.parametrize("name", some([*SESSIONS], ci=1))
def test_a_session_stores_the_same_blobs(
    tmp_path: Path, sent: list[Task], name: str
) -> None:
    expected = played(tmp_path, LOCAL, name).digests
    assert sent == []
    session = played(tmp_path, DASK, name)
    assert session.digests == expected
    assert sum(map(len, expected)) > 4
    if name == "dc":
        assert len(sent) > 10
        rows = [m.payload for m in session.received if len(m.payload) > 15_000]
        assert rows
        for task in sent:
            text = pickle.dumps((task.kernel, task.blocks))
            assert len(text) < 12_000
            for payload in rows:
                middle = len(payload) // 2
                assert bytes(payload[middle : middle + 64]) not in text


def test_a_cluster_that_is_away_fails_no_session(
    tmp_path: Path, sent: list[Task], cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> Cluster:
        raise Unavailable("The Dask scheduler does not answer.")

    with monkeypatch.context() as patch:
        patch.setattr(of_cluster, "connected", away)
        with pytest.raises(Unavailable) as caught:
            played(tmp_path, DASK, "dc")
    crashed = worker.crashed(caught.value)
    assert crashed.is_passing
    assert crashed.what == "The Dask scheduler does not answer."
    assert played(tmp_path, DASK, "dc").digests
    assert sent
