"""Requests that wait for a shared transaction, or for a session to move."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from clustering_protocols.common.errors import CoterieError

_BATCH = 100  # items of a batch, so that none waits behind more than these

T = TypeVar("T")
R = TypeVar("R")


def outcomes(work: Callable[[T], R], items: Iterable[T]) -> list[R | CoterieError]:
    """Return the result of ``work`` for each item, or the CoterieError that it raised."""
    results: list[R | CoterieError] = []
    for item in items:
        try:
            results.append(work(item))
        except CoterieError as refusal:
            results.append(refusal)
    return results


class Batcher:
    """Runs a function in a thread, on batches of the items that arrived meanwhile.

    An item that arrives alone is served at once. For use from one event loop.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[Any, asyncio.Future[Any]]] = []
        self._batches: asyncio.Task[None] | None = None

    async def submit(
        self, work: Callable[[Sequence[T]], Sequence[R | Exception]], item: T
    ) -> R:
        """Return the outcome of an item, or raise it if it is an exception.

        work: returns the outcome of each item of a batch; the same function in all
            calls. Its exception is raised for each item of the batch.
        """
        outcome: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, outcome))
        if self._batches is None:
            self._batches = asyncio.create_task(self._run(work))
        return await outcome

    async def _run(self, work: Callable[[Sequence[Any]], Sequence[Any]]) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
                items = [item for item, _ in batch]
                try:
                    outcomes = await asyncio.to_thread(work, items)
                except Exception as error:  # noqa: BLE001  raised in `submit`
                    outcomes = [error] * len(batch)
                for (_, future), outcome in zip(batch, outcomes, strict=True):
                    if future.done():  # its request was cancelled
                        continue
                    if isinstance(outcome, Exception):
                        future.set_exception(outcome)
                    else:
                        future.set_result(outcome)
        finally:
            self._batches = None


# A notification carries no data: its receiver queries the database. The driver is notified
# that there may be work; it also polls, because other service processes have their own
# notifiers. The driver notifies the requests that wait for a session that has moved.


class Waiter:
    """One request that waits."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._notified = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Wait until notified or timed out; a notification since the last wait counts."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._notified.wait()
        self._notified.clear()

    def notify(self) -> None:
        """Wake the request, from any thread."""
        with suppress(RuntimeError):  # the event loop is closed
            self._loop.call_soon_threadsafe(self._notified.set)


class Notifier:
    """Notifies the driver and requests; safe from any thread."""

    def __init__(self) -> None:
        self._driver = threading.Event()
        self._waiters: defaultdict[str, set[Waiter]] = defaultdict(set)
        self._lock = threading.Lock()

    def notify_driver(self) -> None:
        """Tell the driver that there may be something to do."""
        self._driver.set()

    def wait(self, seconds: float) -> None:
        """Let the driver wait until it is notified, or for the timeout (seconds)."""
        self._driver.wait(seconds)
        self._driver.clear()

    def notify_session(self, session: str) -> None:
        """Tell the requests that wait for a session that it has moved."""
        with self._lock:
            waiters = list(self._waiters.get(session, ()))
        for waiter in waiters:
            waiter.notify()

    @property
    def waited_for(self) -> frozenset[str]:
        """Return the sessions for which requests wait."""
        with self._lock:
            return frozenset(self._waiters)

    @contextmanager
    def subscribe(self, session: str) -> Iterator[Waiter]:
        """Subscribe a request; enter before the query that decides whether it waits."""
        waiter = Waiter()
        with self._lock:
            self._waiters[session].add(waiter)
        try:
            yield waiter
        finally:
            with self._lock:
                self._waiters[session].discard(waiter)
                if not self._waiters[session]:
                    del self._waiters[session]
