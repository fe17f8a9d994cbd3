"""ASGI middleware that limits requests before they reach a route, and logs them.

There are limits on headers, on bodies, and on the number of concurrent requests, both
in total and per sender. Requests with and without a credential are counted in separate
pools, so that neither kind can exhaust the other's. All of this runs in the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from analyst_service.errors import problem_response
from analyst_service.logs import begin_request_context, describe_error
from analyst_service.metrics import Metrics
from analyst_service.settings import Settings
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import TooManyRequests
from clustering_protocols.common.limits import JSON_BYTES

_HEADER_BYTES: Final = 32 << 10  # for the headers, the path and the query together
_KEY = "coterie.place"
_CREDENTIALED = "/v1/sessions"

ALIVE_PATH: Final = "/healthz"
"""The path that tells whether the process is alive; it has no limits on requests."""

READY_PATH: Final = "/readyz"
"""The path that tells whether the process can serve; only its rate is limited."""


def client_address(scope: Scope) -> str:
    """Return the client's address, by which requests without a credential are counted."""
    client = scope.get("client")
    return f"address {client[0] if client else ''}"


@dataclass(slots=True)
class RequestPool:
    """Counts the concurrent requests, in total and per sender.

    max_total: the maximum number of requests of all senders together.
    max_per_sender: the maximum number of requests of one sender.
    max_waiting: the maximum number of waiting long polls of one sender. Waiting
        requests are not included in the other two counts.
    """

    max_total: int
    max_per_sender: int
    max_waiting: int = 0
    number: int = 0
    served: Counter[str] = field(default_factory=Counter)
    waiting: Counter[str] = field(default_factory=Counter)


class PoolPlace:
    """The place of one request in its pool."""

    def __init__(self, pool: RequestPool) -> None:
        self._pool = pool
        self._sender: str | None = None

    @classmethod
    @contextmanager
    def reserve(cls, pool: RequestPool, scope: Scope) -> Iterator[PoolPlace]:
        """Reserve a place for a request; raise :class:`TooManyRequests` if none is free."""
        if pool.number >= pool.max_total:
            raise TooManyRequests("The service is at its limit.")
        pool.number += 1
        place = scope[_KEY] = cls(pool)
        try:
            yield place
        finally:
            place._release()

    @staticmethod
    def from_scope(scope: Scope) -> PoolPlace:
        """Return the place that the request of this ASGI scope has."""
        place: PoolPlace = scope[_KEY]
        return place

    def set_sender(self, sender: str) -> None:
        """Name the request's sender; raise TooManyRequests if it has too many requests."""
        pool = self._pool
        if pool.served[sender] >= pool.max_per_sender:
            raise TooManyRequests(f"More than {pool.max_per_sender} at once.")
        pool.served[sender] += 1
        self._sender = sender

    @contextmanager
    def release_while_waiting(self) -> Iterator[bool]:
        """Give up this request's place in the pool while the ``with`` block waits.

        Yields False, and keeps the place, if too many of the sender's requests wait
        already. The request gets a place again afterwards, even if the pool is full.
        """
        sender, pool = self._sender, self._pool
        if sender is None or pool.waiting[sender] >= pool.max_waiting:
            yield False
            return
        pool.waiting[sender] += 1
        self._release()
        try:
            yield True
        finally:
            pool.number += 1
            pool.served[sender] += 1
            _decrement(pool.waiting, sender)

    def _release(self) -> None:
        self._pool.number -= 1
        if self._sender is not None:
            _decrement(self._pool.served, self._sender)


def _decrement(counts: Counter[str], sender: str) -> None:
    counts[sender] -= 1
    if not counts[sender]:
        del counts[sender]  # otherwise the counter would grow with every new sender


_MAX_WAITING: Final = 32
BODY_SECONDS: Final = 30.0
"""The time (seconds) that a body may take before its rate is limited."""

UNAUTHENTICATED_SECONDS: Final = 5.0
"""The same time for a request without a credential."""

UNAUTHENTICATED_BYTES: Final = 16 << 10
"""The size of the largest body that is accepted without a credential."""

_BYTES_PER_SECOND: Final = 16 << 10  # on average; slower bodies get a 408
_UPLOAD = re.compile(r"/v1/sessions/[^/]+/rounds/\d+/attempts/\d+/contribution")


class RequestLimits:
    """Middleware that refuses requests beyond this process's limits, and never queues them.

    Bodies that are too large or too slow are refused. Uploads have a limit of their
    own, and requests without a credential have lower limits. The path decides which
    limit applies, not the Content-Type, because the framework reads any body that is
    sent to a JSON endpoint. A connection is closed if a body was not fully read, so
    that the remaining bytes are not parsed as another request.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        most = settings.max_requests
        each = max(1, most // 10)
        self.callers = RequestPool(most, each, _MAX_WAITING)
        self.unauthenticated = RequestPool(max(1, most // 2), each)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request with a limited body, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        has_caller = scope["path"].startswith(_CREDENTIALED)
        is_unauthenticated = not has_caller or "authorization" not in headers
        limit: int | None = UNAUTHENTICATED_BYTES if is_unauthenticated else JSON_BYTES
        if not is_unauthenticated and _UPLOAD.fullmatch(scope["path"]) is not None:
            limit = None
        seconds = UNAUTHENTICATED_SECONDS if is_unauthenticated else BODY_SECONDS
        body = _LimitedBody(headers, receive, send, limit, seconds)
        if (refusal := _refuse_large(scope, headers, limit)) is not None:
            await refusal(scope, receive, body.send)
            return
        if scope["path"] in {ALIVE_PATH, READY_PATH}:  # even if pools are full
            await self._app(scope, body.receive, body.send)
            return
        pool = self.unauthenticated if is_unauthenticated else self.callers
        with ExitStack() as stack:
            try:
                place = stack.enter_context(PoolPlace.reserve(pool, scope))
                if is_unauthenticated:  # with credentials, the route sets the sender
                    place.set_sender(client_address(scope))
            except TooManyRequests as error:
                refusal = problem_response(error.problem, error.detail)
                await refusal(scope, receive, body.send)
                return
            await self._app(scope, body.receive, body.send)


def _refuse_large(scope: Scope, headers: Headers, limit: int | None) -> ASGIApp | None:
    """Return a response that refuses oversized headers or an oversized body, or None."""
    size = sum(len(name) + len(value) for name, value in scope["headers"])
    if size + len(scope["path"]) + len(scope["query_string"]) > _HEADER_BYTES:
        detail = f"More than {_HEADER_BYTES} bytes."
        return problem_response(Problem.HEADER_TOO_LARGE, detail)
    length = headers.get("content-length", "0")
    if limit is not None and length.isdigit() and int(length) > limit:
        detail = f"{length} bytes; at most {limit}."
        return problem_response(Problem.TOO_LARGE, detail)
    return None


class _LimitedBody:
    """Limits the size and the rate of a request's body as it is received.

    If the response starts before the whole body was read, the connection is closed.
    """

    def __init__(
        self,
        headers: Headers,
        receive: Receive,
        send: Send,
        limit: int | None,
        seconds: float,
    ) -> None:
        announced = headers.get("content-length", "0") != "0"
        self._is_open = announced or "transfer-encoding" in headers
        self._receive, self._send = receive, send
        self._limit, self._seconds = limit, seconds
        self._begin: float | None = None
        self._received = 0

    async def receive(self) -> Message:
        if not self._is_open:
            return await self._receive()
        loop = asyncio.get_running_loop()
        self._begin = self._begin or loop.time()
        allowed = self._seconds + self._received / _BYTES_PER_SECOND
        try:
            async with asyncio.timeout_at(self._begin + allowed):
                message = await self._receive()
        except TimeoutError:
            # The framework would turn any other exception into a 400 response.
            raise HTTPException(
                Problem.TIMEOUT.status,
                f"Less than {_BYTES_PER_SECOND} bytes per second",
            ) from None
        self._is_open = message.get("more_body", False)
        self._received += len(message.get("body", b""))
        if self._limit is not None and self._received > self._limit:
            raise HTTPException(
                Problem.TOO_LARGE.status, f"More than {self._limit} bytes"
            )
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and self._is_open:
            MutableHeaders(scope=message)["Connection"] = "close"
        await self._send(message)


log = logging.getLogger("coterie.requests")

# Added to every response that does not set these headers itself.
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
_HEADERS_OVER_TLS: Final = {
    **_HEADERS,
    "Strict-Transport-Security": "max-age=31536000",
}


class RequestLog:
    """The outermost middleware, which gives each request an id and logs its outcome.

    The log contains the pattern of the route, not the path, which may name a project.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request and log its outcome; an unexpected exception becomes a 500."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(receive, send, is_tls=scope["scheme"] == "https")
        begin = time.monotonic()
        try:
            await self._app(scope, exchange.receive, exchange.send)
        except Exception as error:  # noqa: BLE001  the caller gets a problem document
            log.error("request failed: %s", describe_error(error))  # noqa: TRY400  no traceback: it may hold values
            if exchange.status is None:
                refusal = problem_response(Problem.INTERNAL, "An unexpected error.")
                await refusal(scope, exchange.receive, exchange.send)
        self._log_request(scope, exchange, time.monotonic() - begin)

    def _log_request(self, scope: Scope, exchange: _Exchange, seconds: float) -> None:
        context, metrics = exchange.context, self._metrics
        route = getattr(scope.get("route"), "path", "unknown")
        metrics.requests.labels(scope["method"], route, exchange.status).inc()
        metrics.received.inc(exchange.received)
        metrics.sent.inc(exchange.sent)
        if context.problem is not None:
            metrics.refusals.labels(context.problem).inc()
        fields = {
            "method": scope["method"],
            "route": route,
            "status": exchange.status,
            "seconds": round(seconds, 4),
            "received_bytes": exchange.received,
            "sent_bytes": exchange.sent,
            "caller": context.caller,
            "problem": context.problem,
        }
        failed = exchange.status is None or exchange.status >= 500
        level = logging.ERROR if failed else logging.INFO
        log.log(level, "request", extra={"fields": fields})


class _Exchange:
    """Counts the bytes of a request and its response, and adds headers to the response."""

    def __init__(self, receive: Receive, send: Send, *, is_tls: bool) -> None:
        self._headers = _HEADERS_OVER_TLS if is_tls else _HEADERS
        self.context = begin_request_context()
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
            headers["X-Request-ID"] = self.context.request_id
            for name, value in self._headers.items():
                headers.setdefault(name, value)
        self.sent += len(message.get("body", b""))
        await self._send(message)
