"""Middleware: limits on every request before it reaches a route, and the request log.

The limits are on headers, on bodies, and on the number of requests under way, in all and
per sender. Requests with and without a credential have separate pools, so that neither
can exhaust the other. All of it runs in the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final, NamedTuple

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from analyst_service.errors import problem_response
from analyst_service.logs import begin_request, describe
from analyst_service.metrics import Metrics
from analyst_service.settings import Settings
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import TooManyRequests
from clustering_protocols.common.limits import JSON_BYTES

_HEADER_BYTES: Final = 32 << 10  # headers and address
_KEY = "coterie.place"
_CREDENTIALED = "/v1/sessions"


def address(scope: Scope) -> str:
    """Return the name by which a request without a credential is counted."""
    client = scope.get("client")
    return f"address {client[0] if client else ''}"


class RequestPool:
    """Counts the requests under way, in all and per sender.

    most: the limit for all senders together.
    most_each: the limit for one sender.
    most_waiting: the limit for long polls of one sender, which are counted separately.
    """

    def __init__(self, most: int, most_each: int, most_waiting: int = 0) -> None:
        self._most, self._most_each = most, most_each
        self.most_waiting = most_waiting
        self._number = 0
        self._served: Counter[str] = Counter()
        self.waiting: Counter[str] = Counter()

    @contextmanager
    def admit(self, scope: Scope) -> Iterator[PoolPlace]:
        """Take a place for a request; raise :class:`TooManyRequests` if none is free."""
        if self._number >= self._most:
            raise TooManyRequests("The service is at its limit.")
        place = PoolPlace(self)
        scope[_KEY] = place
        self._number += 1
        try:
            yield place
        finally:
            self.leave(place.sender)

    def count_sender(self, sender: str) -> None:
        """Count a request that has a place against the limit of its sender."""
        if self._served[sender] >= self._most_each:
            raise TooManyRequests(f"More than {self._most_each} at once.")
        self._served[sender] += 1

    def leave(self, sender: str | None) -> None:
        """Give up a place."""
        self._number -= 1
        if sender is not None:
            self._decrement(self._served, sender)

    def rejoin(self, sender: str) -> None:
        """Take a place again after waiting, even if none is free."""
        self._number += 1
        self._served[sender] += 1
        self._decrement(self.waiting, sender)

    @staticmethod
    def _decrement(counts: Counter[str], sender: str) -> None:
        counts[sender] -= 1
        if not counts[sender]:
            del counts[sender]  # or the counter would grow with each new sender


class PoolPlace:
    """One request's place in its pool."""

    def __init__(self, pool: RequestPool) -> None:
        self._pool = pool
        self.sender: str | None = None

    @staticmethod
    def of(scope: Scope) -> PoolPlace:
        """Return the place of a request."""
        place: PoolPlace = scope[_KEY]
        return place

    def set_sender(self, sender: str) -> None:
        """Name the sender; raise :class:`TooManyRequests` if it has too many under way."""
        self._pool.count_sender(sender)
        self.sender = sender

    @contextmanager
    def step_aside(self) -> Iterator[bool]:
        """Give up the place while the request only waits for news.

        Yields False and keeps the place if too many of the sender's requests wait.
        """
        sender, pool = self.sender, self._pool
        if sender is None or pool.waiting[sender] >= pool.most_waiting:
            yield False
            return
        pool.waiting[sender] += 1
        pool.leave(sender)
        try:
            yield True
        finally:
            pool.rejoin(sender)


class Shares(NamedTuple):
    """Limits on the requests under way at the same time.

    callers: requests with a credential, without waiting long polls.
    unauthenticated: requests without a credential.
    each: requests per credential, or per address without one.
    waiting: held long polls per credential; further ones are answered at once.
    """

    callers: int
    unauthenticated: int
    each: int
    waiting: int


def share_out(max_requests: int) -> Shares:
    """Return the limits that divide a process's simultaneous requests."""
    return Shares(
        max_requests, max(1, max_requests // 2), max(1, max_requests // 10), 32
    )


BODY_SECONDS: Final = 30.0
"""Time for a body before its rate is limited."""

UNAUTHENTICATED_SECONDS: Final = 5.0
"""Time for a body without a credential before its rate is limited."""

UNAUTHENTICATED_BYTES: Final = 16 << 10
"""Largest body without a credential."""

_BYTES_PER_SECOND: Final = 16 << 10  # on average; a slower body gets 408
_UPLOAD = re.compile(r"/v1/sessions/[^/]+/rounds/\d+/attempts/\d+/contribution")


class RequestLimits:
    """Refuses requests that exceed a limit of this process; none are queued.

    Bodies that are too large or too slow are refused. Uploads have their own limit, and
    requests without a credential lower ones. The path decides which limit applies, not
    the Content-Type, because the framework reads any body sent to a JSON endpoint. A
    connection whose body was not fully read is closed, lest the rest be read as a request.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        most, unauthenticated, each, waiting = share_out(settings.max_requests)
        self._callers = RequestPool(most, each, waiting)
        self._unauthenticated = RequestPool(unauthenticated, each)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on if there is room for it, and limit its body."""
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
        body = _Body(headers, receive, send, limit, seconds)
        if (refusal := _refuse_size(scope, headers, limit)) is not None:
            await refusal(scope, receive, body.send)
            return
        pool = self._unauthenticated if is_unauthenticated else self._callers
        with ExitStack() as stack:
            try:
                place = stack.enter_context(pool.admit(scope))
                if is_unauthenticated:  # else the route sets the sender
                    place.set_sender(address(scope))
            except TooManyRequests as error:
                refusal = problem_response(error.problem, error.detail)
                await refusal(scope, receive, body.send)
                return
            await self._app(scope, body.receive, body.send)


def _refuse_size(scope: Scope, headers: Headers, limit: int | None) -> ASGIApp | None:
    """Return a refusal if the headers or the announced body are too large."""
    size = sum(len(name) + len(value) for name, value in scope["headers"])
    if size + len(scope["path"]) + len(scope["query_string"]) > _HEADER_BYTES:
        detail = f"More than {_HEADER_BYTES} bytes."
        return problem_response(Problem.HEADER_TOO_LARGE, detail)
    length = headers.get("content-length", "0")
    if limit is not None and length.isdigit() and int(length) > limit:
        detail = f"{length} bytes; at most {limit}."
        return problem_response(Problem.TOO_LARGE, detail)
    return None


class _Body:
    """Limits the size and the rate of a body; closes the connection of an unread one."""

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
            # the framework turns any other exception into a 400
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

# headers of a response that does not set them itself
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
_HEADERS_OVER_TLS: Final = {
    **_HEADERS,
    "Strict-Transport-Security": "max-age=31536000",
}


class RequestLog:
    """The outermost middleware: gives each request an id and logs its outcome.

    A path may name a project, so the log has the route's pattern instead.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and log its outcome."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(receive, send, is_tls=scope["scheme"] == "https")
        begin = time.monotonic()
        try:
            await self._app(scope, exchange.receive, exchange.send)
        except Exception as error:  # noqa: BLE001  the caller gets a problem document
            log.error("request failed: %s", describe(error))  # noqa: TRY400  no traceback: it may hold values
            if exchange.status is None:
                refusal = problem_response(Problem.INTERNAL, "An unexpected error.")
                await refusal(scope, exchange.receive, exchange.send)
        self._record(scope, exchange, time.monotonic() - begin)

    def _record(self, scope: Scope, exchange: _Exchange, seconds: float) -> None:
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
    """Counts the bytes of one request and response, and adds headers to the response."""

    def __init__(self, receive: Receive, send: Send, *, is_tls: bool) -> None:
        self._headers = _HEADERS_OVER_TLS if is_tls else _HEADERS
        self.context = begin_request()
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
