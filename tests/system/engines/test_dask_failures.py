"""A worker, a scheduler or an analyst that is lost costs time, and no result."""

import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from support.dask_clusters import Processes
from support.repeats import on_command

from analyst_service.blobs import BlobLocation
from analyst_service.engines import dask_engine
from analyst_service.engines.dask_engine import DaskEngine
from analyst_service.engines.tasks import MappedBlobs
from clustering_protocols.common.errors import Unavailable
from clustering_protocols.numerics.blocks import LocalEngine
from tests.system.engines import dask_kernels as kernels

pytestmark = on_command("processes of Dask")


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    root = str(Path(__file__).parents[3])  # where workers find the kernels
    environment = {"COTERIE_DATA_DIR": str(tmp_path), "PYTHONPATH": root}
    running = Processes(2, environment)
    yield running
    running.close()


@pytest.fixture
def engine(
    processes: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DaskEngine]:
    monkeypatch.setattr(dask_engine, "WORTH_SENDING", 0.0)
    monkeypatch.setattr(dask_engine, "_RESULT_SECONDS", 60.0)
    monkeypatch.setattr(dask_engine, "_RESTART_SECONDS", 20.0)
    monkeypatch.setattr(dask_engine, "_START_SECONDS", 15.0)
    place = BlobLocation(folder=tmp_path / "blobs")
    connect = partial(dask_engine.connect_to_cluster, processes.address, place)
    yield DaskEngine(LocalEngine(1), connect, MappedBlobs({}, with_checksums=False))
    if dask_engine._cluster is not None:
        dask_engine._cluster.close()


def test_a_worker_that_is_killed_costs_no_result(
    engine: DaskEngine, processes: Processes, tmp_path: Path
) -> None:
    found = list(engine.map(partial(kernels.deadly, tmp_path), range(100)))
    assert found == list(range(100))
    assert (tmp_path / "dead").exists()
    ended = [each.wait(60) for each in processes.workers if each.poll() is not None]
    assert ended == [-signal.SIGKILL]


def test_blocks_that_kill_their_workers_end_the_step(
    engine: DaskEngine, processes: Processes
) -> None:
    for _ in range(4):
        processes.start_worker()
    with pytest.raises(RuntimeError, match="die when they run"):
        list(engine.map(kernels.always_deadly, range(1)))


def test_without_workers_a_step_is_left_for_later(
    engine: DaskEngine, processes: Processes
) -> None:
    assert list(engine.map(kernels.square, range(3))) == [0, 1, 4]
    for worker in processes.workers:
        worker.kill()
    began = time.monotonic()
    with pytest.raises(Unavailable, match="no workers"):
        list(engine.map(kernels.square, range(3)))
    assert time.monotonic() - began < 40
    processes.start_worker()
    assert list(engine.map(kernels.square, range(3))) == [0, 1, 4]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
def test_a_scheduler_that_is_lost_leaves_a_step_for_later(
    engine: DaskEngine, processes: Processes, tmp_path: Path, how: signal.Signals
) -> None:
    results = engine.map(partial(kernels.noted, tmp_path), range(1000))
    next(results)
    os.kill(processes.scheduler.pid, how)
    began = time.monotonic()
    with pytest.raises(Unavailable, match=r"does not answer|returned nothing"):
        list(results)
    assert time.monotonic() - began < 40
    with pytest.raises(Unavailable, match=r"does not answer|returned nothing"):
        list(engine.map(kernels.square, range(3)))
    processes.close()
    processes.start_scheduler()
    processes.start_worker()
    assert list(engine.map(kernels.square, range(3))) == [0, 1, 4]
