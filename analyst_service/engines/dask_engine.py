"""An engine that runs kernels on the workers of a Dask cluster.

Short work is done in this process. Results are returned in the order of the blocks, so
no bit of them depends on the workers or on the number of blocks per task.
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
from typing import Any, Final, TypeVar

import dask
from distributed import Client, Future, LocalCluster, Security
from distributed.scheduler import KilledWorker

from analyst_service.blobs import BlobLocation
from analyst_service.engines.tasks import (
    BlockFailure,
    BlockResults,
    BlockTask,
    MappedBlobs,
    installed_versions,
    run_task,
)
from clustering_protocols.common.errors import Unavailable
from clustering_protocols.numerics.blocks import LocalEngine
from clustering_protocols.protocol_packages import list_enabled_packages

# Only futures are used, never ``scatter``, so that the cluster can recompute whatever it
# loses. Problems with the cluster raise :class:`Unavailable`, which delays a step but does
# not fail its session. Task keys are random, so that Dask never reuses a previous result.

log = logging.getLogger(__name__)
B = TypeVar("B")
T = TypeVar("T")
R = TypeVar("R")
SentTask = tuple[Future, int]

_CHECK_SECONDS: Final = 1.0  # interval between checks of the scheduler
_ANSWER_SECONDS: Final = 10.0  # a healthy scheduler answers within milliseconds
_RESULT_SECONDS: Final = 300.0  # timeout for the next result of a step
_START_SECONDS: Final = 120.0  # timeout for starting worker processes on a busy machine
_RESTART_SECONDS: Final = 30.0  # timeout for restarting a worker
_AWAY: Final = (
    "The Dask scheduler does not answer, or refuses our certificate (COTERIE_ENGINE)."
)
_NO_WORKERS: Final = "The Dask scheduler has no workers."
_SILENT: Final = "Dask's workers returned nothing within five minutes."
_UNREAD: Final = (
    "Dask could not run a task: its workers have to be started from the installation "
    "of this analyst."
)
# Secrets of the service, its database and its cloud provider; kernels need none of them.
_SECRET_PREFIXES: Final = (
    "COTERIE_DATABASE", "COTERIE_SMTP", "COTERIE_IDENTITY", "COTERIE_BLOB_STORE_FILE",
    "PG", "AWS_", "AZURE_", "GOOGLE_",
)  # fmt: skip
_TROUBLE: Final = (OSError, CancelledError, asyncio.CancelledError)


class Cluster:
    """A connection to a Dask scheduler.

    own: the local cluster that this process started, which is closed together with the
        connection; None for an external scheduler.
    """

    def __init__(self, client: Client, own: LocalCluster | None = None) -> None:
        self._client = client
        self._own = own

    @property
    def is_open(self) -> bool:
        """Whether the client is connected."""
        return bool(self._client.status == "running")

    def count_threads(self) -> int:
        """Return the number of the workers' threads, once there is at least one worker.

        Raises Unavailable if the scheduler does not answer or has no workers.
        """
        deadline = time.monotonic() + _RESTART_SECONDS
        while (n_threads := self._query_n_threads()) == 0:
            if time.monotonic() > deadline:
                raise self._close_with_error(_NO_WORKERS)
            time.sleep(_CHECK_SECONDS / 10)
        return n_threads

    def submit(self, task: BlockTask) -> SentTask:
        """Submit a task, and return its future and the number of its blocks."""
        key = f"block-{secrets.token_hex(16)}"
        try:
            future = self._client.submit(run_task, task, key=key, pure=False)
        except (*_TROUBLE, RuntimeError):  # the client is closed
            raise self._close_with_error(_AWAY) from None
        return future, len(task.blocks)

    def fetch_results(self, sent: SentTask) -> BlockResults:
        """Return the results of a submitted task, or raise the exception of its kernel.

        If a worker is lost, its task runs on another worker.

        Raises Unavailable if there are no workers, or if there is no result in time.
        Raises RuntimeError if the task kills its workers, or returns no valid result.
        """
        future, n_blocks = sent
        answer = self._wait_for_result(future)
        if isinstance(answer, BlockFailure):
            raise answer.error
        if not isinstance(answer, BlockResults) or len(answer.results) != n_blocks:
            raise RuntimeError("a Dask worker's answer is not a result")
        return answer

    def cancel(self, tasks: Iterable[SentTask]) -> None:
        """Cancel submitted tasks; do nothing if the connection is closed."""
        futures = [future for future, _ in tasks]
        if futures and self.is_open:
            self._client.cancel(futures)

    def close(self) -> None:
        """Close the connection, and the local cluster if it has one."""
        self._client.close(timeout=_CHECK_SECONDS)
        if self._own is not None:
            self._own.close(timeout=_ANSWER_SECONDS)

    def _wait_for_result(self, future: Future) -> Any:
        """Wait for a result, and check every second that the scheduler still answers.

        Results arrive through the scheduler, so none would arrive if it were silent.
        """
        deadline = time.monotonic() + _RESULT_SECONDS
        loop = self._client.loop.asyncio_loop
        result = asyncio.run_coroutine_threadsafe(self._gather_result(future), loop)
        try:
            while time.monotonic() < deadline:
                concurrent.futures.wait([result], _CHECK_SECONDS)
                if result.done():
                    return result.result()
                self.count_threads()
        except KilledWorker:
            raise RuntimeError("Dask's workers die when they run a task") from None
        except Unavailable:
            raise
        except _TROUBLE:
            raise self._close_with_error(_AWAY) from None
        except Exception as error:  # `run_task` itself never raises, so it did not run
            log.error("dask: %s", type(error).__name__)  # noqa: TRY400  no traceback: it may hold values
            raise self._close_with_error(_UNREAD) from error
        finally:
            result.cancel()
        raise self._close_with_error(_SILENT)

    async def _gather_result(self, future: Future) -> Any:
        return await self._client.gather(future, asynchronous=True)

    def _query_n_threads(self) -> int:
        try:
            cores = self._client.sync(
                self._client.scheduler.ncores, callback_timeout=_ANSWER_SECONDS
            )
        except (*_TROUBLE, TimeoutError):
            raise self._close_with_error(_AWAY) from None
        return sum(cores.values())

    def _close_with_error(self, why: str) -> Unavailable:
        log.error("dask: %s", why)
        self.close()
        return Unavailable(why)


_cluster: Cluster | None = None


def connect_to_cluster(scheduler: str, place: BlobLocation) -> Cluster:
    """Return the connection of this process, which is opened or reopened if necessary.

    scheduler: the address of a scheduler; if empty, a local cluster is started.
    place: the blob store that the workers of a local cluster read.

    Raises Unavailable if no connection can be opened.
    """
    global _cluster  # noqa: PLW0603  a local cluster outlasts a step
    if _cluster is None or not _cluster.is_open:
        if _cluster is not None:
            _cluster.close()
        _cluster = _open_cluster(scheduler, place)
    return _cluster


def _open_cluster(scheduler: str, place: BlobLocation) -> Cluster:
    try:
        own = None if scheduler else _call_within(_START_SECONDS, _start_workers, place)
        client = _call_within(_START_SECONDS, _connect_client, own or scheduler)
    except Exception as error:  # noqa: BLE001  a wrong certificate raises TypeError
        log.error("dask: %s. %s", type(error).__name__, _AWAY)  # noqa: TRY400  no traceback: it may hold values
        raise Unavailable(_AWAY) from None
    return Cluster(client, own)


def _connect_client(cluster: LocalCluster | str) -> Client:
    return Client(cluster, timeout=_ANSWER_SECONDS, set_as_default=False)


def _call_within(seconds: float, function: Callable[[T], R], argument: T) -> R:
    """Call a function in a thread; raise TimeoutError if it takes more than ``seconds``."""
    result: concurrent.futures.Future[R] = concurrent.futures.Future()

    def call_function() -> None:
        try:
            result.set_result(function(argument))
        except Exception as error:  # noqa: BLE001  raised by `result`
            result.set_exception(error)

    threading.Thread(target=call_function, daemon=True).start()
    return result.result(timeout=seconds)


def _start_workers(place: BlobLocation) -> LocalCluster:
    """Start one worker per processor, reachable only from this machine.

    Workers use TLS with newly generated certificates, so that no other account of this
    machine can run code on them. Workers inherit no secrets, and read rows from this
    process's files, or from the cache of its object store, into which the step has
    already fetched the rows.
    """
    secret_names = [name for name in os.environ if name.startswith(_SECRET_PREFIXES)]
    for name in secret_names:
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


# Choosing which blocks are sent to the cluster


WORTH_SENDING: Final = 0.5
"""The minimum CPU time (s) of a kernel whose blocks are sent to the cluster.

With less work, sending the blocks takes longer than it saves (measured in November 2026).
"""
TASK_SECONDS: Final = 0.1  # target CPU time per task; submitting one takes milliseconds
_MOST_BLOCKS: Final = 64  # per task
_MOST_BLOCK_BYTES: Final = 1 << 20  # limit for arrays of a block outside of blobs
_MOST_KERNEL_BYTES: Final = 1 << 20  # limit for a kernel's arrays, per TASK_SECONDS
_AHEAD: Final = 2  # number of submitted tasks per thread


@dataclass(slots=True)
class _KernelCost:
    """CPU seconds of a kernel: latest average per block, and total of the last ``map``."""

    per_block: float = 0.0
    total: float = 0.0


class DaskEngine:
    """Runs kernels on the workers of a cluster, or in this process if that is as fast.

    Rows are never sent, so blocks whose rows are not in a blob are processed in this
    process. Kernels that are not module-level functions, or that carry much data for
    little work, run in this process too.

    connect: returns the cluster; called before the first task is sent.
    mapped: the blobs of the step.
    """

    def __init__(
        self, local: LocalEngine, connect: Callable[[], Cluster], mapped: MappedBlobs
    ) -> None:
        self._local = local
        self._connect = connect
        self._mapped = mapped
        self._costs: dict[Any, _KernelCost] = {}

    def map(self, kernel: Callable[[B], R], blocks: Iterable[B]) -> Iterator[R]:
        """Yield the kernel's result for each block, in the order of the blocks.

        Raises Unavailable if the cluster cannot be used; the step can then be retried.
        """
        function = _module_level_function(kernel)
        if function is None:
            yield from self._local.map(kernel, blocks)
            return
        cost = self._costs.setdefault(function, _KernelCost())
        expected, cost.total = cost.total, 0.0
        remaining = iter(blocks)
        if expected < WORTH_SENDING:
            yield from self._run_first_blocks_locally(kernel, remaining, cost)
        first = list(islice(remaining, 1))
        if first and self._is_too_large(kernel, first[0], cost):
            yield from self._local.map(kernel, chain(first, remaining))
        elif first:
            yield from self._map_on_cluster(kernel, chain(first, remaining), cost)

    def _run_first_blocks_locally(
        self, kernel: Callable[[B], R], remaining: Iterator[B], cost: _KernelCost
    ) -> Iterator[R]:
        """Run blocks in this process until the kernel has taken enough CPU time to send."""

        def first_blocks() -> Iterator[B]:
            while cost.total < WORTH_SENDING:
                block = list(islice(remaining, 1))
                if not block:
                    return
                yield block[0]

        timed = partial(_time_kernel, kernel)
        for result, seconds in self._local.map(timed, first_blocks()):
            cost.total += seconds
            cost.per_block = seconds
            yield result

    def _map_on_cluster(
        self, kernel: Callable[[B], R], blocks: Iterator[B], cost: _KernelCost
    ) -> Iterator[R]:
        cluster = self._connect()
        window = _AHEAD * cluster.count_threads() + 1
        tasks = self._build_tasks(kernel, blocks, cost)
        waiting: deque[SentTask] = deque()
        try:
            for task in islice(tasks, window):
                waiting.append(cluster.submit(task))
            while waiting:
                answer = cluster.fetch_results(waiting[0])
                waiting.popleft()
                for task in islice(tasks, 1):
                    waiting.append(cluster.submit(task))
                cost.total += answer.seconds
                cost.per_block = answer.seconds / len(answer.results)
                yield from answer.results
        finally:
            cluster.cancel(waiting)

    def _build_tasks(
        self, kernel: Callable[[B], R], blocks: Iterator[B], cost: _KernelCost
    ) -> Iterator[BlockTask]:
        sent_kernel, _ = self._mapped.replace_arrays(kernel)
        installed = installed_versions(list_enabled_packages())
        while batch := list(islice(blocks, _n_blocks_per_task(cost))):
            sent_blocks = [self._mapped.replace_arrays(block)[0] for block in batch]
            yield BlockTask(versions=installed, kernel=sent_kernel, blocks=sent_blocks)

    def _is_too_large(
        self, kernel: Callable[[B], R], block: B, cost: _KernelCost
    ) -> bool:
        """Return whether a kernel or block has too much data to send for its CPU time."""
        worth = max(cost.per_block / TASK_SECONDS, 1.0)
        _, of_kernel = self._mapped.replace_arrays(kernel)
        _, of_block = self._mapped.replace_arrays(block)
        return of_block > _MOST_BLOCK_BYTES or of_kernel > _MOST_KERNEL_BYTES * worth


def _n_blocks_per_task(cost: _KernelCost) -> int:
    if cost.per_block <= 0:
        return 1
    return min(max(ceil(TASK_SECONDS / cost.per_block), 1), _MOST_BLOCKS)


def _time_kernel(kernel: Callable[[B], R], block: B) -> tuple[R, float]:
    begin = time.thread_time()
    result = kernel(block)
    return result, time.thread_time() - begin


def _module_level_function(kernel: object) -> FunctionType | None:
    """Return the module-level function that a kernel calls, or None if there is none.

    A nested function would be sent together with all variables of its closure.
    """
    while isinstance(kernel, partial):
        kernel = kernel.func
    if isinstance(kernel, FunctionType) and "<" not in kernel.__qualname__:
        return kernel
    return None
