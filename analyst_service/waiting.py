"""Support for requests that wait for a shared transaction or for a session to change."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from clustering_protocols.common.errors import CoterieError

_BATCH = 100  # maximum size of a batch, which limits how long an item waits

T = TypeVar("T")
R = TypeVar("R")


def try_each(work: Callable[[T], R], items: Iterable[T]) -> list[R | CoterieError]:
    """Call ``work`` for each item, and return the results or CoterieErrors, in order."""
    results: list[R | CoterieError] = []
    for item in items:
        try:
            results.append(work(item))
        except CoterieError as refusal:
            results.append(refusal)
    return results


class Batcher:
    """Runs a function in a thread, on batches of items that arrive while it is busy.

    An item that arrives while no batch is running is processed at once. Not
    thread-safe.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[Any, asyncio.Future[Any]]] = []
        self._batches: asyncio.Task[None] | None = None

    async def submit(
        self, work: Callable[[Sequence[T]], Sequence[R | Exception]], item: T
    ) -> R:
        """Process an item as part of a batch, and return its outcome or raise it.

        work: returns the outcome, or an exception, for each item of a batch. If it
            raises, every caller of the batch does. All calls must use the same function.
        """
        outcome: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, outcome))
        if self._batches is None:
            self._batches = asyncio.create_task(self._run_queued(work))
        return await outcome

    async def _run_queued(self, work: Callable[[Sequence[Any]], Sequence[Any]]) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
                items = [item for item, _ in batch]
                try:
                    outcomes = await asyncio.to_thread(work, items)
                except Exception as error:  # noqa: BLE001  raised in `submit`
                    outcomes = [error] * len(batch)
                for (_, future), outcome in zip(batch, outcomes, strict=True):
                    if future.done():  # the request was cancelled
                        continue
                    if isinstance(outcome, Exception):
                        future.set_exception(outcome)
                    else:
                        future.set_result(outcome)
        finally:
            self._batches = None


# A notification carries no data, so its receiver queries the database. Requests notify the
# driver that there may be work. It also polls, because each service process has its own
# notifier. The driver notifies requests that wait for a session that has changed.


class Waiter:
    """A request that waits for a session to change."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._notified = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Wait for a notification or the timeout, unless a notification came already."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._notified.wait()
        self._notified.clear()

    def notify(self) -> None:
        """Wake the request; may be called from any thread."""
        with suppress(RuntimeError):  # the event loop is already closed
            self._loop.call_soon_threadsafe(self._notified.set)


class Notifier:
    """Notifies the driver and waiting requests; safe to use from any thread."""

    def __init__(self) -> None:
        self._driver = threading.Event()
        self._waiters: defaultdict[str, set[Waiter]] = defaultdict(set)
        self._lock = threading.Lock()

    def notify_driver(self) -> None:
        """Wake the driver, because there may be work."""
        self._driver.set()

    def wait_for_work(self, seconds: float) -> None:
        """Block the driver until it is notified, or until the timeout (seconds)."""
        self._driver.wait(seconds)
        self._driver.clear()

    def notify_session(self, session: str) -> None:
        """Wake all requests that wait for a session."""
        with self._lock:
            waiters = list(self._waiters.get(session, ()))
        for waiter in waiters:
            waiter.notify()

    @property
    def awaited_sessions(self) -> frozenset[str]:
        """The ids of the sessions for which requests are waiting."""
        with self._lock:
            return frozenset(self._waiters)

    @contextmanager
    def subscribe(self, session: str) -> Iterator[Waiter]:
        """Subscribe a request; do so before the query that decides whether it waits."""
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
