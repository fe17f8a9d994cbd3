"""Bounds on bodies: how large JSON may be, and how slowly anything may come."""

from __future__ import annotations

import asyncio
import re
from typing import Final, NamedTuple

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from analyst_service.errors import problem_response
from analyst_service.middleware.request_limits import is_strangers
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.limits import JSON_BYTES

BODY_SECONDS: Final = 30.0
"""Head start of a body before its rate counts."""

STRANGER_SECONDS: Final = 5.0
"""Head start of a body without a credential."""

STRANGER_BYTES: Final = 16 << 10
"""Largest body without a credential."""

_BYTES_PER_SECOND: Final = 16 << 10  # on average; slower ones get 408
_UPLOAD = re.compile(
    r"/v1/sessions/[^/]+/rounds/\d+/attempts/\d+/contribution(/upload)?"
)


class BoundedBodies:
    """Refuses JSON bodies over a limit, and bodies that come too slowly.

    Uploads have a limit of their own, and strangers narrower ones. The path decides, not
    the Content-Type: the framework reads whatever is sent to a JSON endpoint. A connection
    whose body was not read to its end is closed: what is left of it is no second request.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, counting and timing what is read of its body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        bounds = _bounds(scope)
        limit = bounds.limit
        body = _Body(scope, receive, send, bounds)
        length = Headers(scope=scope).get("content-length", "0")
        if limit is not None and length.isdigit() and int(length) > limit:
            refusal = problem_response(
                Problem.TOO_LARGE, f"{length} bytes; at most {limit}."
            )
            await refusal(scope, receive, body.send)
            return
        await self._app(scope, body.receive, body.send)


class _Bounds(NamedTuple):
    """How long a body may be, and its head start in seconds."""

    limit: int | None
    seconds: float


def _bounds(scope: Scope) -> _Bounds:
    if is_strangers(scope):
        return _Bounds(STRANGER_BYTES, STRANGER_SECONDS)
    is_upload = _UPLOAD.fullmatch(scope["path"]) is not None
    return _Bounds(None if is_upload else JSON_BYTES, BODY_SECONDS)


class _Body:
    """The body of one request."""

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        bounds: _Bounds,
    ) -> None:
        headers = Headers(scope=scope)
        announced = headers.get("content-length", "0") != "0"
        self._is_open = announced or "transfer-encoding" in headers
        self._receive, self._send = receive, send
        self._limit, self._seconds = bounds
        self._begin: float | None = None
        self._seen = 0

    async def receive(self) -> Message:
        if not self._is_open:
            return await self._receive()
        loop = asyncio.get_running_loop()
        self._begin = self._begin or loop.time()
        allowed = self._seconds + self._seen / _BYTES_PER_SECOND
        try:
            async with asyncio.timeout_at(self._begin + allowed):
                message = await self._receive()
        except TimeoutError:
            # of other exceptions the framework makes a 400
            raise HTTPException(
                Problem.TIMEOUT.status,
                f"Less than {_BYTES_PER_SECOND} bytes per second",
            ) from None
        self._is_open = message.get("more_body", False)
        self._seen += len(message.get("body", b""))
        if self._limit is not None and self._seen > self._limit:
            raise HTTPException(
                Problem.TOO_LARGE.status, f"More than {self._limit} bytes"
            )
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and self._is_open:
            MutableHeaders(scope=message)["Connection"] = "close"
        await self._send(message)
