"""Work in blocks: one kernel over many of them, the results in their order.

A role does not say where its kernels run: whoever runs the role hands it an engine. The
results are put together in the order of the blocks, so that every engine gives the same
bits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Final, Protocol, TypeVar

B = TypeVar("B")
R = TypeVar("R")


class Engine(Protocol):
    """Runs a kernel over blocks."""

    def map(self, kernel: Callable[[B], R], blocks: Iterable[B]) -> Iterator[R]:
        """Yield what a kernel returns for each block, in the order of the blocks.

        Few blocks are held at a time, however many there are. A kernel changes nothing
        but what it returns: it may run twice, and at the same time as others. At the
        analyst it is a function of a module, bound to little, and a block holds views of
        what parties sent: both may go to another process.
        """
        ...


class LocalEngine:
    """Runs kernels in this process.

    Parameters
    ----------
    n_threads : int
        How many blocks are worked on at once. Kernels that are compiled run side by
        side; of others one at a time gets on.
    """

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads

    def map(self, kernel: Callable[[B], R], blocks: Iterable[B]) -> Iterator[R]:
        """Yield what a kernel returns for each block, in the order of the blocks."""
        if self.n_threads == 1:
            yield from map(kernel, blocks)
            return
        remaining = iter(blocks)
        with ThreadPoolExecutor(self.n_threads) as pool:
            waiting: deque[Future[R]] = deque()
            for block in islice(remaining, self.n_threads + 1):
                waiting.append(pool.submit(kernel, block))
            while waiting:
                done = waiting.popleft().result()
                for block in islice(remaining, 1):
                    waiting.append(pool.submit(kernel, block))
                yield done


ONE_THREAD: Final[Engine] = LocalEngine()
"""What roles get from who does not say otherwise."""
