"""A bell: whoever waits in this process hears of a change at once.

It carries no news. Who hears it looks into the database, and looks there now and then in
any case: other service processes have bells of their own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Ear:
    """One request that waits."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._heard = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Return when the bell has rung since this ear was made or waited, or in time."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._heard.wait(), seconds)
        self._heard.clear()

    def ring(self) -> None:
        """Wake the request, from any thread."""
        with suppress(RuntimeError):  # its loop has been closed
            self._loop.call_soon_threadsafe(self._heard.set)


class Bell:
    """Rings for the driver and for requests; safe from any thread."""

    def __init__(self) -> None:
        self._driver = threading.Event()
        self._ears: set[Ear] = set()
        self._lock = threading.Lock()

    def ring(self) -> None:
        """Tell everybody that something has changed."""
        self._driver.set()
        with self._lock:
            ears = list(self._ears)
        for ear in ears:
            ear.ring()

    def wait(self, seconds: float) -> None:
        """Let the driver wait for the bell."""
        self._driver.wait(seconds)
        self._driver.clear()

    @contextmanager
    def listening(self) -> Iterator[Ear]:
        """Listen, before looking whether there is anything to wait for."""
        ear = Ear()
        with self._lock:
            self._ears.add(ear)
        try:
            yield ear
        finally:
            with self._lock:
                self._ears.discard(ear)
