"""Run the server until a signal arrives, then drain it so that no request is cut off.

After SIGTERM ``/readyz`` answers 503, long polls are answered, and each connection is
closed after its next response, so that the client connects to another server. New
requests are still served for a configured time, because load balancers notice the
change late. After that no connection is accepted, requests in progress have a few more
seconds, and unfinished steps are released.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import signal
import time
from collections import defaultdict
from functools import partial
from types import FrameType
from typing import Any, Final, cast

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LAST_SECONDS: Final = 10  # for requests in progress at the end of draining
_GC_THRESHOLD: Final = 10_000  # net allocations between two garbage collections
_CLOSE: Final = (b"connection", b"close")
HEADER_SECONDS: Final = 10
_LEAST_LIMIT, _MOST_LIMIT = 16, 1024


def run_server(app: FastAPI, drain_seconds: float, **options: Any) -> None:
    """Serve an application until a signal ends it; ``options`` are those of uvicorn."""
    options["timeout_graceful_shutdown"] = LAST_SECONDS
    options["http"] = partial(TimedProtocol, waiting=WaitingConnections())
    # Imported modules are never freed, so the garbage collector need not scan them.
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD)
    DrainingServer(app, drain_seconds, uvicorn.Config(app, **options)).run()


class DrainingServer(uvicorn.Server):
    """A server that drains after its first SIGTERM; any other signal stops it at once."""

    def __init__(
        self, app: FastAPI, drain_seconds: float, config: uvicorn.Config
    ) -> None:
        super().__init__(config)
        self._app, self._seconds = app, drain_seconds
        self._drain_until: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Only record the signal, because it may interrupt code that holds a lock."""
        if sig == signal.SIGTERM and self._drain_until is None:
            self._drain_until = time.monotonic() + self._seconds
        else:
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Start draining after the signal; stop the server when the drain time is over."""
        if self._drain_until is not None:
            if not self._app.state.service.draining.is_set():
                self._start_draining()
            if time.monotonic() >= self._drain_until and not self.should_exit:
                super().handle_exit(signal.SIGTERM, None)
        return await super().on_tick(counter)

    def _start_draining(self) -> None:
        """Answer long polls, and close each connection after its next response.

        An idle connection stays open too, because a request may already be on its way.
        """
        self._app.state.service.start_draining()
        # Change both lists: uvicorn rebuilds the first from the second every second.
        state = self.server_state
        state.default_headers = [*state.default_headers, _CLOSE]
        self.config.encoded_headers.append(_CLOSE)
        for connection in cast("set[TimedProtocol]", state.connections):
            connection.close_after_response()


# Connections with incomplete headers. A reverse proxy waits for complete headers, but
# without a proxy a client could open many connections and send half a header on each, to
# exhaust the file descriptors. Headers therefore have a deadline. If too many connections
# are waiting, the address that has most of them loses its oldest one.


class WaitingConnections:
    """The connections whose headers are incomplete, by client address, oldest first.

    limit: the maximum number of such connections; by default a quarter of the file
        descriptors that this process may open, but at least 16 and at most 1,024.
    """

    def __init__(self, limit: int | None = None) -> None:
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._limit = limit or min(max(files // 4, _LEAST_LIMIT), _MOST_LIMIT)
        self._waiting: dict[str, dict[TimedProtocol, None]] = defaultdict(dict)
        self._n_waiting = 0

    def add(self, connection: TimedProtocol) -> None:
        """Add a connection; above the limit, abort the oldest one of the busiest client."""
        self._waiting[connection.client_address][connection] = None
        self._n_waiting += 1
        if self._n_waiting > self._limit:
            most = max(self._waiting.values(), key=len)
            next(iter(most)).abort_connection()

    def remove(self, connection: TimedProtocol) -> None:
        """Remove a connection; do nothing if it is not waiting."""
        of_address = self._waiting[connection.client_address]
        if connection in of_address:
            del of_address[connection]
            self._n_waiting -= 1
        if not of_address:
            del self._waiting[connection.client_address]


class TimedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 protocol, with a deadline for the headers of each request.

    waiting: the waiting connections of the whole process.
    **options: options of uvicorn's protocol.
    """

    def __init__(self, *, waiting: WaitingConnections, **options: Any) -> None:
        super().__init__(**options)
        self._waiting = waiting
        self._lacks_header = True
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def client_address(self) -> str:
        """The client's IP address, or an empty text if it is not known."""
        return self.client[0] if self.client else ""

    def abort_connection(self) -> None:
        """Close the connection at once, without a response."""
        self._cancel_header_deadline()
        self.transport.abort()

    def close_after_response(self) -> None:
        """Close the connection after the current response, if there is one."""
        if self.cycle is not None:
            self.cycle.keep_alive = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's type
        """Start the deadline for the first headers."""
        super().connection_made(transport)
        self._start_header_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadline."""
        self._cancel_header_deadline()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Record that the headers of a new request are incomplete."""
        self._lacks_header = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Record that the headers of the request are complete."""
        self._lacks_header = False
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Parse the bytes, and start a deadline if the headers are still incomplete."""
        super().data_received(data)
        if not self._lacks_header:
            self._cancel_header_deadline()
        elif self._deadline is None and not self.transport.is_closing():
            self._start_header_deadline()

    def _start_header_deadline(self) -> None:
        self._deadline = self.loop.call_later(HEADER_SECONDS, self.abort_connection)
        self._waiting.add(self)

    def _cancel_header_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
            self._waiting.remove(self)
