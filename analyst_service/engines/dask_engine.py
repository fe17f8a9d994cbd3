"""An engine whose blocks are worked on by the workers of a Dask cluster.

What is done soon is done here. Results come in the order of the blocks, so that bits do
not depend on who did what, or on how many blocks went together.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from math import ceil
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from analyst_service.engines.references import MappedBlobs
from analyst_service.engines.tasks import BlockTask, versions
from clustering_protocols.numerics.blocks import LocalEngine
from clustering_protocols.protocol_packages import named_packages

if TYPE_CHECKING:
    from analyst_service.engines.cluster import Cluster, SentTask

B = TypeVar("B")
R = TypeVar("R")

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
