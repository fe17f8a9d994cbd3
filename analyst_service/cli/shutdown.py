"""Serving until a signal, and a little longer, so that no request is cut off.

On SIGTERM ``/readyz`` answers 503, waiting requests are answered, and connections are
closed after their response, so that a party's next request goes elsewhere. New requests
are still served for a configured time, because a load balancer notices late. Then no
connection is accepted, requests under way have a few seconds, and unfinished steps are
released.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import time
from collections import defaultdict
from functools import partial
from types import FrameType
from typing import Any, Final, cast

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LAST_SECONDS: Final = 10  # for requests under way, after the last connection
_GC_THRESHOLD: Final = 10_000  # objects allocated and not freed, between collections
_CLOSE: Final = (b"connection", b"close")
HEADER_SECONDS: Final = 10
_LEAST_LIMIT, _MOST_LIMIT = 16, 1024


def run(app: FastAPI, drain_seconds: float, **options: Any) -> None:
    """Serve an application until a signal ends it; options are those of uvicorn."""
    options["timeout_graceful_shutdown"] = LAST_SECONDS
    options["http"] = partial(TimedProtocol, waiting=WaitingConnections())
    # imported modules stay, so garbage collection need not visit them
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD)
    DrainingServer(app, drain_seconds, uvicorn.Config(app, **options)).run()


class DrainingServer(uvicorn.Server):
    """A server that drains on its first SIGTERM; another signal ends it at once."""

    def __init__(
        self, app: FastAPI, drain_seconds: float, config: uvicorn.Config
    ) -> None:
        super().__init__(config)
        self._app, self._seconds = app, drain_seconds
        self._drain_until: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Only note the signal, because it may arrive while any lock is held."""
        if sig == signal.SIGTERM and self._drain_until is None:
            self._drain_until = time.monotonic() + self._seconds
        else:
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: drain after the signal, and end when the time is over."""
        if self._drain_until is not None:
            if not self._app.state.service.draining.is_set():
                self._drain()
            if time.monotonic() >= self._drain_until and not self.should_exit:
                super().handle_exit(signal.SIGTERM, None)
        return await super().on_tick(counter)

    def _drain(self) -> None:
        """Answer waiting requests; close each connection after its next response.

        Idle connections stay open until then, because a request may be on its way.
        """
        self._app.state.service.drain()
        # both lists, because uvicorn rebuilds the first from the second every second
        state = self.server_state
        state.default_headers = [*state.default_headers, _CLOSE]
        self.config.encoded_headers.append(_CLOSE)
        for connection in cast("set[TimedProtocol]", state.connections):
            connection.close_after_response()


# Connections whose header is incomplete. A reverse proxy forwards a request when its
# header is complete. Without one, anybody could open connections, send half a header and
# occupy a file descriptor each. So a header has a deadline, and if too many connections
# wait, the address with most of them loses its oldest one.


class WaitingConnections:
    """Connections that wait for the end of a header, by address, oldest first.

    limit: the most that may wait; by default a quarter of the file descriptors that
        this process may open, but at least 16 and at most 1,024.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit or _default_limit()
        self._waiting: dict[str, dict[TimedProtocol, None]] = defaultdict(dict)
        self._n_waiting = 0

    def add(self, connection: TimedProtocol) -> None:
        """Add a connection; if there are too many, close another one."""
        self._waiting[connection.address][connection] = None
        self._n_waiting += 1
        if self._n_waiting > self._limit:
            most = max(self._waiting.values(), key=len)
            next(iter(most)).give_up()

    def remove(self, connection: TimedProtocol) -> None:
        """Remove a connection."""
        of_address = self._waiting[connection.address]
        if connection in of_address:
            del of_address[connection]
            self._n_waiting -= 1
        if not of_address:
            del self._waiting[connection.address]


class TimedProtocol(HttpToolsProtocol):
    """HTTP/1.1 whose headers have a deadline.

    waiting: shared by all connections of the process.
    **options: see uvicorn.
    """

    def __init__(self, *, waiting: WaitingConnections, **options: Any) -> None:
        super().__init__(**options)
        self._waiting = waiting
        self._lacks_header = True
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def address(self) -> str:
        """Return the client's IP address."""
        return self.client[0] if self.client else ""

    def give_up(self) -> None:
        """Close the connection at once."""
        self._stop_waiting()
        self.transport.abort()

    def close_after_response(self) -> None:
        """Close the connection after the response under way, if there is one."""
        if self.cycle is not None:
            self.cycle.keep_alive = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's type
        """Start the deadline of the first header."""
        super().connection_made(transport)
        self._start_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Note that a request begins."""
        self._lacks_header = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Note that the header is complete."""
        self._lacks_header = False
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Process bytes; start the deadline of a header that is still incomplete."""
        super().data_received(data)
        if not self._lacks_header:
            self._stop_waiting()
        elif self._deadline is None and not self.transport.is_closing():
            self._start_waiting()

    def _start_waiting(self) -> None:
        self._deadline = self.loop.call_later(HEADER_SECONDS, self.give_up)
        self._waiting.add(self)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
            self._waiting.remove(self)


def _default_limit() -> int:
    if sys.platform == "win32":  # Windows has no such limit
        return _MOST_LIMIT
    import resource

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(max(files // 4, _LEAST_LIMIT), _MOST_LIMIT)
