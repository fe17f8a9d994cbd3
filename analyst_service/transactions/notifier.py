"""Wake-ups within this process: who waits hears of a change at once.

A wake-up carries no news; who gets it looks into the database. The driver is notified
that there may be work, and looks now and then in any case, for other service processes
have notifiers of their own. It notifies the requests that wait for a session that moved.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress


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
