"""Blocks on Dask's workers: the same results in the same order, or a step for later."""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import dask_clusters

from analyst_service.engines import dask_engine, tasks
from analyst_service.engines.dask_engine import Cluster, DaskEngine
from analyst_service.engines.tasks import (
    BlockFailure,
    BlockResults,
    BlockTask,
    MappedBlobs,
)
from clustering_protocols.common.errors import Unavailable
from clustering_protocols.numerics.blocks import LocalEngine
from tests.system.engines import dask_kernels as kernels

NOTHING = MappedBlobs({}, with_checksums=False)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with dask_clusters.in_this_process() as running:
        yield running


@pytest.fixture
def engine(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> DaskEngine:
    """An engine that sends all that it may."""
    monkeypatch.setattr(dask_engine, "WORTH_SENDING", 0.0)
    return DaskEngine(LocalEngine(2), lambda: cluster, NOTHING)


@pytest.fixture
def sent(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> list[BlockTask]:
    seen: list[BlockTask] = []
    submit = cluster.submit

    def noted(task: BlockTask) -> Any:
        seen.append(task)
        return submit(task)

    monkeypatch.setattr(cluster, "submit", noted)
    return seen


@pytest.mark.parametrize("n_blocks", [0, 1, 2, 1000])
def test_results_come_in_the_order_of_the_blocks(
    engine: DaskEngine, sent: list[BlockTask], n_blocks: int
) -> None:
    found = list(engine.map(kernels.square, iter(range(n_blocks))))
    assert found == [block * block for block in range(n_blocks)]
    assert sum(len(task.blocks) for task in sent) == n_blocks
    if n_blocks == 1000:
        assert len(sent) < 100, "several blocks a task"


def test_little_work_stays_here(sent: list[BlockTask]) -> None:
    def connect() -> Cluster:
        raise AssertionError("nothing is worth a connection")

    engine = DaskEngine(LocalEngine(2), connect, NOTHING)
    for _ in range(5):
        assert list(engine.map(kernels.square, range(50)))[-1] == 49 * 49
    assert sent == []


def test_what_would_carry_rows_stays_here(
    engine: DaskEngine, sent: list[BlockTask]
) -> None:
    rows = np.ones((200, 1000))

    def seeing(block: int) -> float:
        return float(rows[block].sum())

    assert list(engine.map(seeing, range(3))) == [1000.0] * 3
    assert list(engine.map(lambda block: block, range(3))) == [0, 1, 2]
    piece = kernels.Piece(rows=(rows,), first=0)
    (found,) = engine.map(partial(kernels.summed, np.zeros(1000)), [piece])
    np.testing.assert_array_equal(found, np.full(1000, 200.0))
    bound = partial(kernels.row_of, rows)
    assert list(engine.map(bound, range(3))) == [1000.0] * 3
    assert sent == []


def test_a_worker_of_other_versions_is_refused_with_a_sentence(
    engine: DaskEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {**tasks.installed_versions(), "scipy": "0.1", "Python": "2.7.18"}
    monkeypatch.setattr(dask_engine, "installed_versions", lambda *_: other)
    with pytest.raises(Unavailable, match=r"Python 3\S+ \(here 2\.7\.18\).*scipy") as e:
        list(engine.map(kernels.square, range(9)))
    assert "from the installation of this analyst" in e.value.detail


@pytest.mark.parametrize(
    "garbage", [None, 7, [], BlockResults(results=[1, 2], seconds=0.0), BlockFailure]
)
def test_garbage_is_no_result(
    engine: DaskEngine, monkeypatch: pytest.MonkeyPatch, garbage: object
) -> None:
    monkeypatch.setattr(dask_engine, "run_task", partial(_garbage, garbage))
    with pytest.raises(RuntimeError, match="not a result"):
        list(engine.map(kernels.square, [1]))


def _garbage(garbage: object, _: BlockTask) -> object:
    return garbage


def test_a_step_that_is_given_up_leaves_no_work(
    engine: DaskEngine, tmp_path: Path
) -> None:
    results = engine.map(partial(kernels.noted, tmp_path), range(1000))
    next(results)
    results.close()
    time.sleep(0.5)
    before = len(list(tmp_path.iterdir()))
    time.sleep(0.5)
    assert len(list(tmp_path.iterdir())) == before < 1000


def test_nothing_that_dask_prints_shows_a_number() -> None:
    task = BlockTask(
        versions={}, kernel=partial(kernels.row_of, np.ones(3)), blocks=[7.25]
    )
    for each in (
        task,
        BlockResults(results=[7.25], seconds=0.0),
        BlockFailure(error=ValueError("7.25")),
    ):
        assert "7.25" not in f"{each!r} {each}"
        assert "1." not in repr(task)
