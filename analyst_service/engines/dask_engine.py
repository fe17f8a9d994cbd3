"""An engine whose blocks are worked on by the workers of a Dask cluster.

What is done soon is done here. Results come in the order of the blocks, so that bits do
not depend on who did what, or on how many blocks went together.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from math import ceil
from types import FunctionType
from typing import Any, Final, NamedTuple, TypeVar

import dask
from distributed import Client, Future, LocalCluster, Security
from distributed.scheduler import KilledWorker

from analyst_service.blobs import BlobPlace
from analyst_service.engines.tasks import (
    BlockFailure,
    BlockResults,
    BlockTask,
    MappedBlobs,
    versions,
    work,
)
from clustering_protocols.common.errors import Unavailable
from clustering_protocols.numerics.blocks import LocalEngine
from clustering_protocols.protocol_packages import named_packages

# Only futures are used, and never ``scatter``: whatever a cluster loses can be asked for
# again. What goes wrong with the cluster raises :class:`Unavailable`, which costs a step
# time and no session. Names of tasks are random and tell nothing.

log = logging.getLogger(__name__)
B = TypeVar("B")
T = TypeVar("T")
R = TypeVar("R")

_BEAT_SECONDS: Final = 1.0
_ANSWER_SECONDS: Final = 10.0  # a scheduler that is well answers within milliseconds
_START_SECONDS: Final = 120.0  # processes of workers, on a machine that is busy
_ALONE_SECONDS: Final = 30.0  # time for a worker that ended to be started again
_AWAY: Final = (
    "The Dask scheduler does not answer, or not to our certificate (COTERIE_ENGINE)."
)
_NO_WORKERS: Final = "The Dask scheduler has no workers."
_SILENT: Final = "Dask's workers returned nothing within five minutes."
_UNREAD: Final = (
    "Dask could not run a task: its workers have to be started from the installation "
    "of this analyst."
)
# settings of the service, and credentials of databases and clouds: no kernel asks for one
_OF_THE_SERVICE: Final = (
    "COTERIE_DATABASE", "COTERIE_SMTP", "COTERIE_IDENTITY", "PG", "AWS_", "AZURE_",
    "GOOGLE_",
)  # fmt: skip
_TROUBLE: Final = (OSError, CancelledError, asyncio.CancelledError)


class SentTask(NamedTuple):
    """A task that was handed out."""

    future: Future
    n_blocks: int


class Cluster:
    """A connection to a Dask scheduler.

    seconds: how long to wait for the next result.
    own: what is closed with the connection.
    """

    def __init__(
        self, client: Client, seconds: float, own: LocalCluster | None = None
    ) -> None:
        self._client = client
        self._seconds = seconds
        self._own = own

    @property
    def is_well(self) -> bool:
        """Return whether the connection stands."""
        return bool(self._client.status == "running")

    def n_threads(self) -> int:
        """Return how many tasks are worked on at once; waits for a first worker.

        Raises Unavailable if the scheduler does not answer, or nobody works for it.
        """
        until = time.monotonic() + min(_ALONE_SECONDS, self._seconds)
        while (found := self._count()) == 0:
            if time.monotonic() > until:
                raise self._give_up(_NO_WORKERS)
            time.sleep(_BEAT_SECONDS / 10)
        return found

    def submit(self, task: BlockTask) -> SentTask:
        """Hand a task out."""
        key = f"block-{secrets.token_hex(16)}"
        try:
            future = self._client.submit(work, task, key=key, pure=False)
        except (*_TROUBLE, RuntimeError):  # the client was closed
            raise self._give_up(_AWAY) from None
        return SentTask(future, len(task.blocks))

    def result(self, sent: SentTask) -> BlockResults:
        """Return what came of a task; raise what its kernel raised.

        A task whose worker is lost runs on another.

        Raises Unavailable if there are no workers, or nothing comes.
        Raises RuntimeError if workers end each time that they run it, or return what is
            no result.
        """
        found = self._wait_for(sent.future)
        if isinstance(found, BlockFailure):
            raise found.error
        if not isinstance(found, BlockResults) or len(found.results) != sent.n_blocks:
            raise RuntimeError("a Dask worker returned what is no result")
        return found

    def forget(self, sent: Iterable[SentTask]) -> None:
        """Let nobody work on these any more."""
        futures = [each.future for each in sent]
        if futures and self.is_well:
            self._client.cancel(futures)

    def close(self) -> None:
        """End the connection, and the workers where they were started here."""
        self._client.close(timeout=_BEAT_SECONDS)
        if self._own is not None:
            self._own.close(timeout=_ANSWER_SECONDS)

    def _wait_for(self, future: Future) -> Any:
        """Return a result; the scheduler is asked for a sign of life until it is here.

        It hands over what is done, too, and may fall silent before it has.
        """
        until = time.monotonic() + self._seconds
        loop = self._client.loop.asyncio_loop
        coming = asyncio.run_coroutine_threadsafe(self._handed_over(future), loop)
        try:
            while time.monotonic() < until:
                concurrent.futures.wait([coming], _BEAT_SECONDS)
                if coming.done():
                    return coming.result()
                self.n_threads()
        except KilledWorker:
            raise RuntimeError("Dask's workers end when they run a task") from None
        except Unavailable:
            raise
        except _TROUBLE:
            raise self._give_up(_AWAY) from None
        except Exception as error:  # `work` raises nothing: it did not begin
            log.error("dask: %s", type(error).__name__)  # noqa: TRY400  no traceback: it may hold values
            raise self._give_up(_UNREAD) from error
        finally:
            coming.cancel()
        raise self._give_up(_SILENT)

    async def _handed_over(self, future: Future) -> Any:
        return await self._client.gather(future, asynchronous=True)

    def _count(self) -> int:
        try:
            found = self._client.sync(
                self._client.scheduler.ncores, callback_timeout=_ANSWER_SECONDS
            )
        except (*_TROUBLE, TimeoutError):
            raise self._give_up(_AWAY) from None
        return sum(found.values())

    def _give_up(self, why: str) -> Unavailable:
        log.error("dask: %s", why)
        self.close()
        return Unavailable(why)


_kept: Cluster | None = None


def connect(scheduler: str, seconds: float, place: BlobPlace) -> Cluster:
    """Return the connection of this process; it stays while it is well.

    scheduler: its address; where it is empty, workers are started here.
    place: what such workers read.

    Raises Unavailable.
    """
    global _kept  # noqa: PLW0603  workers that were started here outlast a step
    if _kept is None or not _kept.is_well:
        if _kept is not None:
            _kept.close()
        _kept = _open_cluster(scheduler, seconds, place)
    return _kept


def _open_cluster(scheduler: str, seconds: float, place: BlobPlace) -> Cluster:
    try:
        own = None if scheduler else _run_within(_START_SECONDS, _own_workers, place)
        client = _run_within(_START_SECONDS, _client, own or scheduler)
    except Exception as error:  # noqa: BLE001  a wrong certificate raises TypeError
        log.error("dask: %s. %s", type(error).__name__, _AWAY)  # noqa: TRY400  no traceback: it may hold values
        raise Unavailable(_AWAY) from None
    return Cluster(client, seconds, own)


def _client(where: LocalCluster | str) -> Client:
    return Client(where, timeout=_ANSWER_SECONDS, set_as_default=False)


def _run_within(seconds: float, make: Callable[[T], R], given: T) -> R:
    """Return what is made, or raise TimeoutError: a scheduler that sleeps says nothing."""
    made: concurrent.futures.Future[R] = concurrent.futures.Future()

    def run() -> None:
        try:
            made.set_result(make(given))
        except Exception as error:  # noqa: BLE001  it is raised where it is waited for
            made.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return made.result(timeout=seconds)


def _own_workers(place: BlobPlace) -> LocalCluster:
    """Start a worker for each processor of this machine; nothing of it is seen outside.

    They speak TLS with certificates drawn for them, so that no other account of this
    machine gets a worker to run code. What they inherit holds no secret: they map rows
    from this process's files, and of an object store from its cache, where the step has
    put them. So they neither know the store nor hold its credentials.
    """
    for name in [each for each in os.environ if each.startswith(_OF_THE_SERVICE)]:
        del os.environ[name]
    environment = {
        "COTERIE_DATA_DIR": str(place.folder.parent.resolve()),
        "COTERIE_BLOB_STORE": "",
    }
    with dask.config.set({"distributed.scheduler.http.routes": []}):
        return LocalCluster(
            n_workers=os.cpu_count() or 1,
            threads_per_worker=1,
            host="127.0.0.1",
            protocol="tls",
            security=Security.temporary(),
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address="127.0.0.1:0",
            env=environment,
        )


# Which blocks go there: those that are worth the way


WORTH_SENDING: Final = 0.5
"""From how many seconds of processor time on blocks go to the cluster.

Below, handing out takes longer than it saves (measured in November 2026).
"""
TASK_SECONDS: Final = 0.1  # of work: handing a task out takes some milliseconds
_MOST_BLOCKS: Final = 64  # of a task
_MOST_CARRIED: Final = 1 << 20  # bytes of a block that lie in no blob
_MOST_BOUND: Final = 1 << 20  # the same of a kernel, for each TASK_SECONDS of a block
_AHEAD: Final = 2  # tasks per thread that wait for it or run


@dataclass(slots=True)
class _Pace:
    """What a kernel took lately, in seconds of processor time."""

    of_a_block: float = 0.0
    of_all: float = 0.0


class DaskEngine:
    """Runs kernels on the workers of a cluster, or here where that is as fast.

    Blocks stay here too whose rows lie in no blob: rows do not travel. So do kernels
    that are no function of a module, or bound to much beside their work.

    connect: called when something is to be sent.
    mapped: the blobs of the step.
    """

    def __init__(
        self, local: LocalEngine, connect: Callable[[], Cluster], mapped: MappedBlobs
    ) -> None:
        self._local = local
        self._connect = connect
        self._mapped = mapped
        self._paces: dict[Any, _Pace] = {}

    def map(self, kernel: Callable[[B], R], blocks: Iterable[B]) -> Iterator[R]:
        """Yield what a kernel returns for each block, in the order of the blocks.

        Raises Unavailable if the cluster cannot be used; the step may be taken again
            later.
        """
        function = _function_of(kernel)
        if function is None:
            yield from self._local.map(kernel, blocks)
            return
        pace = self._paces.setdefault(function, _Pace())
        expected, pace.of_all = pace.of_all, 0.0
        remaining = iter(blocks)
        if expected < WORTH_SENDING:
            yield from self._begin_here(kernel, remaining, pace)
        first = list(islice(remaining, 1))
        if first and self._is_heavy(kernel, first[0], pace):
            yield from self._local.map(kernel, chain(first, remaining))
        elif first:
            yield from self._elsewhere(kernel, chain(first, remaining), pace)

    def _begin_here(
        self, kernel: Callable[[B], R], remaining: Iterator[B], pace: _Pace
    ) -> Iterator[R]:
        """Work here until it is worth sending the rest."""

        def soon() -> Iterator[B]:
            while pace.of_all < WORTH_SENDING:
                block = list(islice(remaining, 1))
                if not block:
                    return
                yield block[0]

        for result, seconds in self._local.map(partial(_time_kernel, kernel), soon()):
            pace.of_all += seconds
            pace.of_a_block = seconds
            yield result

    def _elsewhere(
        self, kernel: Callable[[B], R], blocks: Iterator[B], pace: _Pace
    ) -> Iterator[R]:
        cluster = self._connect()
        window = _AHEAD * cluster.n_threads() + 1
        tasks = self._tasks(kernel, blocks, pace)
        waiting: deque[SentTask] = deque()
        try:
            for task in islice(tasks, window):
                waiting.append(cluster.submit(task))
            while waiting:
                done = cluster.result(waiting[0])
                waiting.popleft()
                for task in islice(tasks, 1):
                    waiting.append(cluster.submit(task))
                pace.of_all += done.seconds
                pace.of_a_block = done.seconds / len(done.results)
                yield from done.results
        finally:
            cluster.forget(waiting)

    def _tasks(
        self, kernel: Callable[[B], R], blocks: Iterator[B], pace: _Pace
    ) -> Iterator[BlockTask]:
        lean_kernel, _ = self._mapped.lean(kernel)
        known = versions(named_packages())
        while some := list(islice(blocks, _blocks_of_a_task(pace))):
            lean = [self._mapped.lean(block)[0] for block in some]
            yield BlockTask(versions=known, kernel=lean_kernel, blocks=lean)

    def _is_heavy(self, kernel: Callable[[B], R], block: B, pace: _Pace) -> bool:
        """Return whether more would travel than the work is worth."""
        worth = max(pace.of_a_block / TASK_SECONDS, 1.0)
        (_, bound), (_, carried) = map(self._mapped.lean, (kernel, block))
        return carried > _MOST_CARRIED or bound > _MOST_BOUND * worth


def _blocks_of_a_task(pace: _Pace) -> int:
    if pace.of_a_block <= 0:
        return 1
    return min(max(ceil(TASK_SECONDS / pace.of_a_block), 1), _MOST_BLOCKS)


def _time_kernel(kernel: Callable[[B], R], block: B) -> tuple[R, float]:
    begun = time.thread_time()
    result = kernel(block)
    return result, time.thread_time() - begun


def _function_of(kernel: object) -> FunctionType | None:
    """Return the function of a module that a kernel is; None if it is something else.

    What is defined within a function would travel with all that it sees.
    """
    while isinstance(kernel, partial):
        kernel = kernel.func
    if isinstance(kernel, FunctionType) and "<" not in kernel.__qualname__:
        return kernel
    return None
