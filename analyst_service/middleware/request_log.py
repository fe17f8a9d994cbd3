"""Per request: its context, one log line, the figures, and a 500 for what escaped."""

from __future__ import annotations

import logging
import time
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from analyst_service.errors import problem_response
from analyst_service.monitoring.logs import begin_request, describe
from analyst_service.monitoring.metrics import Metrics
from clustering_protocols.common.error_catalogue import Problem

log = logging.getLogger("coterie.requests")

# of every answer that says nothing else
_USUAL: Final = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
_USUAL_OVER_TLS: Final = {
    **_USUAL,
    "Strict-Transport-Security": "max-age=31536000",
}


class RequestLog:
    """The outermost part: names each request, and tells how it went.

    A path may name people's projects, so the log has the route's pattern instead.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and write down what became of it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(receive, send, is_tls=scope["scheme"] == "https")
        begin = time.monotonic()
        try:
            await self._app(scope, exchange.receive, exchange.send)
        except Exception as error:  # noqa: BLE001  whatever it is, the caller gets a document
            log.error("request failed: %s", describe(error))  # noqa: TRY400  no traceback: it may hold values
            if exchange.status is None:
                refusal = problem_response(Problem.INTERNAL, "An unexpected error.")
                await refusal(scope, exchange.receive, exchange.send)
        self._tell(scope, exchange, time.monotonic() - begin)

    def _tell(self, scope: Scope, exchange: _Exchange, seconds: float) -> None:
        note, metrics = exchange.note, self._metrics
        route = getattr(scope.get("route"), "path", "unknown")
        metrics.requests.labels(scope["method"], route, exchange.status).inc()
        metrics.received.inc(exchange.received)
        metrics.sent.inc(exchange.sent)
        if note.problem is not None:
            metrics.refusals.labels(note.problem).inc()
        fields = {
            "method": scope["method"],
            "route": route,
            "status": exchange.status,
            "seconds": round(seconds, 4),
            "received_bytes": exchange.received,
            "sent_bytes": exchange.sent,
            "caller": note.caller,
            "problem": note.problem,
        }
        failed = exchange.status is None or exchange.status >= 500
        level = logging.ERROR if failed else logging.INFO
        log.log(level, "request", extra={"fields": fields})


class _Exchange:
    """Counts what comes and goes of one request, and names it in its response."""

    def __init__(self, receive: Receive, send: Send, *, is_tls: bool) -> None:
        self._usual = _USUAL_OVER_TLS if is_tls else _USUAL
        self.note = begin_request()
        self.status: int | None = None
        self.received = self.sent = 0
        self._receive, self._send = receive, send

    async def receive(self) -> Message:
        message = await self._receive()
        self.received += len(message.get("body", b""))
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-ID"] = self.note.request_id
            for name, value in self._usual.items():
                headers.setdefault(name, value)
        self.sent += len(message.get("body", b""))
        await self._send(message)
