"""How requests wait: for a transaction that they share, and for news of a session."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from clustering_protocols.common.errors import CoterieError

_MOST = 100  # in one go: nobody waits behind more than these

T = TypeVar("T")
R = TypeVar("R")


def outcomes(work: Callable[[T], R], items: Iterable[T]) -> list[R | CoterieError]:
    """Return what work makes of each item, or its refusal: the others continue."""
    found: list[R | CoterieError] = []
    for item in items:
        try:
            found.append(work(item))
        except CoterieError as refused:
            found.append(refused)
    return found


class Batcher:
    """Does work of one kind in a thread; what comes meanwhile is done in the next go.

    Nothing waits for company: who comes alone is served alone. Used from one event loop.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[Any, asyncio.Future[Any]]] = []
        self._turns: asyncio.Task[None] | None = None

    async def do(
        self, work: Callable[[Sequence[T]], Sequence[R | Exception]], item: T
    ) -> R:
        """Return what work makes of an item, or raise it if it is an exception.

        work: the same for all items; returns or raises. What it raises is raised for
            each item of its go.
        """
        outcome: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, outcome))
        if self._turns is None:
            self._turns = asyncio.create_task(self._take_turns(work))
        return await outcome

    async def _take_turns(self, work: Callable[[Sequence[Any]], Sequence[Any]]) -> None:
        try:
            while self._waiting:
                turn, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
                items = [item for item, _ in turn]
                try:
                    outcomes = await asyncio.to_thread(work, items)
                except Exception as error:  # noqa: BLE001  it is theirs who wait
                    outcomes = [error] * len(turn)
                for (_, waiting), outcome in zip(turn, outcomes, strict=True):
                    _settle(waiting, outcome)
        finally:
            self._turns = None


def _settle(waiting: asyncio.Future[Any], outcome: Any) -> None:
    if waiting.done():  # anyone who waited has gone
        return
    if isinstance(outcome, Exception):
        waiting.set_exception(outcome)
    else:
        waiting.set_result(outcome)


# A wake-up carries no news; who gets it looks into the database. The driver is notified
# that there may be work, and looks now and then in any case, for other service processes
# have notifiers of their own. It notifies the requests that wait for a session that moved.


class Waiter:
    """One request that waits."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._notified = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Return when notified since creation or the last wait, or after the timeout."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._notified.wait()
        self._notified.clear()

    def notify(self) -> None:
        """Wake the request, from any thread."""
        with suppress(RuntimeError):  # its loop has been closed
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
        """Let the driver wait until it is notified, or for so many seconds."""
        self._driver.wait(seconds)
        self._driver.clear()

    def notify_session(self, session: str) -> None:
        """Tell the requests that wait for a session that it has moved."""
        with self._lock:
            waiters = list(self._waiters.get(session, ()))
        for waiter in waiters:
            waiter.notify()

    def notify_all(self) -> None:
        """Tell the driver and all requests that wait."""
        self.notify_driver()
        for session in self.waited_for:
            self.notify_session(session)

    @property
    def waited_for(self) -> frozenset[str]:
        """Return the sessions for which requests wait."""
        with self._lock:
            return frozenset(self._waiters)

    @contextmanager
    def subscribe(self, session: str) -> Iterator[Waiter]:
        """Subscribe before looking whether there is anything to wait for."""
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
