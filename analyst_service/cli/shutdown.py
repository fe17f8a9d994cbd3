"""Serving until a signal comes, and a little longer: so that nobody is cut off.

On SIGTERM ``/readyz`` says 503, who waits is answered, and connections are not kept, so
that the next request of the same party goes elsewhere. What still comes is served
for as long as a setting says, since those who send requests here learn of the end late.
Then no connection is taken any more, requests under way have a few seconds, and steps
that are not done are given back.
"""

from __future__ import annotations

import gc
import signal
import time
from functools import partial
from types import FrameType
from typing import Any, Final

import uvicorn
from fastapi import FastAPI

from analyst_service.cli.header_deadline import TimedProtocol, WaitingConnections

LAST_SECONDS: Final = 10  # for requests under way, once nothing more is taken
_MUCH_GARBAGE: Final = 10_000  # objects more than were let go
_CLOSE: Final = (b"connection", b"close")


def run(app: FastAPI, drain_seconds: float, **options: Any) -> None:
    """Serve an application until a signal ends it; options are those of uvicorn."""
    options["timeout_graceful_shutdown"] = LAST_SECONDS
    options["http"] = partial(TimedProtocol, waiting=WaitingConnections())
    # what is imported stays: a search for garbage goes through what requests leave alone
    gc.freeze()
    gc.set_threshold(_MUCH_GARBAGE)
    DrainingServer(app, drain_seconds, uvicorn.Config(app, **options)).run()


class DrainingServer(uvicorn.Server):
    """A server that drains on its first SIGTERM; another signal ends it at once."""

    def __init__(
        self, app: FastAPI, drain_seconds: float, config: uvicorn.Config
    ) -> None:
        super().__init__(config)
        self._app, self._seconds = app, drain_seconds
        self._until: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Note the signal, and nothing else: it may come within any lock."""
        if sig == signal.SIGTERM and self._until is None:
            self._until = time.monotonic() + self._seconds
        else:
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        """Drain once it was noted, ten times a second; end when the time is over."""
        if self._until is not None:
            if not self._app.state.service.draining.is_set():
                self._drain()
            if time.monotonic() >= self._until and not self.should_exit:
                super().handle_exit(signal.SIGTERM, None)
        return await super().on_tick(counter)

    def _drain(self) -> None:
        """Answer who waits; let each connection end with the answer under way."""
        self._app.state.service.drain()
        # for answers from now on: these headers, written anew from those every second
        state = self.server_state
        state.default_headers = [*state.default_headers, _CLOSE]
        self.config.encoded_headers.append(_CLOSE)
        for connection in list(state.connections):
            connection.shutdown()
