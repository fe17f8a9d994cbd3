"""Engines that run a kernel over many blocks and yield the results in order.

The caller of a role passes it an engine. Results are always combined in the order of
the blocks, so every engine produces identical bits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import islice
from typing import Final, Protocol, TypeVar

B = TypeVar("B")
R = TypeVar("R")


class Engine(Protocol):
    """Interface of an object that runs a kernel over blocks."""

    def map(self, kernel: Callable[[B], R], blocks: Iterable[B]) -> Iterator[R]:
        """Yield the results of a kernel, in the order of the blocks.

        Only a few blocks are held in memory at a time. A kernel must have no side
        effects: it may run twice, and at the same time as others. At the analyst,
        kernel and block may be pickled for another process, so the kernel must be a
        module-level function bound to small arguments, and the block holds views of
        received arrays. A kernel must not call the engine, whose threads may all be
        waiting for kernels.
        """
        ...


class LocalEngine:
    """An engine that runs kernels in this process.

    n_threads: how many blocks are computed at once. Only compiled kernels, which
        release the GIL, benefit from more than one thread.
    """

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads

    def map(self, kernel: Callable[[B], R], blocks: Iterable[B]) -> Iterator[R]:
        """Yield the results of a kernel, in the order of the blocks."""
        if self.n_threads == 1:
            yield from map(kernel, blocks)
            return
        runs = (self._pool.submit(kernel, block) for block in blocks)
        pending = deque(islice(runs, self.n_threads + 1))
        try:
            while pending:
                result = pending.popleft().result()
                pending.extend(islice(runs, 1))
                yield result
        finally:
            for run in pending:  # the caller stopped iterating early
                run.cancel()

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        """Return the pool; it is cached because starting threads takes long."""
        return ThreadPoolExecutor(self.n_threads)


ONE_THREAD: Final[Engine] = LocalEngine()
"""The default engine, which computes one block at a time."""
