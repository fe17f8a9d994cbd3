"""A bell: who waits in this process hears of a change at once.

It carries no news. Who hears it looks into the database. The driver hears that something
was asked of it; it looks now and then in any case, for other service processes have
bells of their own, and lets those hear who wait for a session that has moved.
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
        self._heard = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Return when the bell has rung since this ear was made or waited, or in time."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._heard.wait(), seconds)
        self._heard.clear()

    def notify(self) -> None:
        """Wake the request, from any thread."""
        with suppress(RuntimeError):  # its loop has been closed
            self._loop.call_soon_threadsafe(self._heard.set)


class Notifier:
    """Rings for the driver and for requests; safe from any thread."""

    def __init__(self) -> None:
        self._driver = threading.Event()
        self._ears: defaultdict[str, set[Waiter]] = defaultdict(set)
        self._lock = threading.Lock()

    def notify_driver(self) -> None:
        """Tell the driver that there may be something to do."""
        self._driver.set()

    def wait(self, seconds: float) -> None:
        """Let the driver wait for the bell."""
        self._driver.wait(seconds)
        self._driver.clear()

    def notify_session(self, session: str) -> None:
        """Tell the requests that wait for a session that it has moved."""
        with self._lock:
            ears = list(self._ears.get(session, ()))
        for ear in ears:
            ear.notify()

    @property
    def awaited(self) -> frozenset[str]:
        """Return the sessions for which requests wait."""
        with self._lock:
            return frozenset(self._ears)

    @contextmanager
    def subscribe(self, session: str) -> Iterator[Waiter]:
        """Listen, before looking whether there is anything to wait for."""
        ear = Waiter()
        with self._lock:
            self._ears[session].add(ear)
        try:
            yield ear
        finally:
            with self._lock:
                self._ears[session].discard(ear)
                if not self._ears[session]:
                    del self._ears[session]
