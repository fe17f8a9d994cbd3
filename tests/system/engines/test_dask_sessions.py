"""Whole sessions: the analyst stores the same blobs, whichever engine works for it."""

import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from sklearn.datasets import make_blobs
from support import dask_clusters
from support.repeats import some
from threadpoolctl import threadpool_limits

from analyst_service import worker
from analyst_service.blobs import BlobLocation
from analyst_service.engines import dask_engine, tasks
from analyst_service.engines.dask_engine import Cluster
from analyst_service.engines.tasks import BlockTask
from clustering_protocols import simulation
from clustering_protocols.algorithms import lloyd
from clustering_protocols.common import limits
from clustering_protocols.common.errors import Unavailable
from clustering_protocols.contract import Params
from clustering_protocols.numerics import row_blocks
from clustering_protocols.protocols.dc import DataCollaboration, maths
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.terms.terms import Layout
from tests.system.engines.stepped import Stepped

SESSIONS: dict[str, tuple[Params, Layout]] = {
    "dc": (
        DataCollaboration(n_clusters=3, n_init=1, max_iter=3, dimensions="all_but_one"),
        Layout.lattice(2, 2),
    ),
    "dc, spectral": (
        DataCollaboration(
            n_clusters=3, algorithm="spectral", n_init=1, dimensions="all_but_one"
        ),
        Layout.lattice(2, 2),
    ),
    "pqmds": (
        ProductQuantisation(n_clusters=3, n_init=1, sub_dim=2, codebook_size=30),
        Layout.lattice(1, 2),
    ),
}


@pytest.fixture(scope="module", autouse=True)
def small_blocks() -> Iterator[None]:
    """Few rows are many blocks, wherever a session is stepped."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lloyd, "WORTH_A_THREAD", 0)
        patch.setattr(limits, "MANY_ROWS", 500)
        patch.setattr(row_blocks, "BLOCK_ITEMS", 3000)
        patch.setattr(maths, "_LEAST_ROWS", 64)
        patch.setattr(limits, "MANY_IN_A_GRAPH", 500)
        patch.setattr(limits, "N_REPRESENTATIVES", 100)
        yield


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # a worker limits the threads of its process, which is this one: parties are here too
    with threadpool_limits(1), dask_clusters.in_this_process() as running:
        yield running


@pytest.fixture
def sent(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, played: Stepped
) -> Iterator[list[BlockTask]]:
    """All tasks of a step, whose blocks are small and sent where they may be."""
    seen: list[BlockTask] = []
    submit = cluster.submit

    def noted(task: BlockTask) -> Any:
        seen.append(task)
        return submit(task)

    monkeypatch.setattr(cluster, "submit", noted)
    monkeypatch.setattr(dask_engine, "connect_to_cluster", lambda *_: cluster)
    monkeypatch.setattr(dask_engine, "WORTH_SENDING", 0.0)
    monkeypatch.setenv("COTERIE_DATA_DIR", str(played.place.folder.parent))
    tasks._open_worker_blob_store.cache_clear()
    yield seen
    tasks._open_worker_blob_store.cache_clear()


@pytest.fixture(scope="module")
def played(
    request: pytest.FixtureRequest,
    cluster: Cluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Stepped:
    """A session that was stepped without the cluster."""
    del cluster  # but while it limits threads
    params, layout = SESSIONS[request.param]
    X, _ = make_blobs(800, 8, centers=3, cluster_std=4.0, random_state=0)
    data = simulation.split(X, layout, 0).data
    place = BlobLocation(folder=tmp_path_factory.mktemp("session") / "blobs")
    session = Stepped(place, params, layout, data, seed=3)
    session.run_to_end()
    return session


@pytest.mark.thorough
@pytest.mark.parametrize("played", some([*SESSIONS], ci=1), indirect=True)
def test_every_step_stores_the_same_blobs_and_no_row_travels(
    played: Stepped, sent: list[BlockTask]
) -> None:
    for job, digests in played.steps:
        followed = worker.run_step(replace(job, engine="dask"))
        assert list(followed.payloads) == digests
    assert len(sent) > 10
    if played.agreement.count(b'"dc"'):
        assert_no_row_travelled(played, sent)


def assert_no_row_travelled(played: Stepped, sent: list[BlockTask]) -> None:
    rows = [m.payload for m in played.received_messages if len(m.payload) > 15_000]
    assert len(rows) == 4
    for task in sent:
        text = pickle.dumps((task.kernel, task.blocks))
        assert len(text) < 12_000
        for payload in rows:
            middle = len(payload) // 2
            assert bytes(payload[middle : middle + 64]) not in text


@pytest.mark.parametrize("played", ["dc"], indirect=True)
def test_a_cluster_that_is_away_fails_no_session(
    played: Stepped, sent: list[BlockTask], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> Cluster:
        raise Unavailable("The Dask scheduler does not answer.")

    monkeypatch.setattr(dask_engine, "connect_to_cluster", away)
    outcomes = [
        worker.run_step_safely(replace(job, engine="dask")) for job, _ in played.steps
    ]
    crashed = [each for each in outcomes if isinstance(each, worker.Crashed)]
    assert crashed == [
        worker.Crashed(cause="The Dask scheduler does not answer.", is_temporary=True)
    ]
    assert not any(isinstance(each, worker.Failed) for each in outcomes)
    assert sent == []
