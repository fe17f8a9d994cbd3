"""A bound on JSON bodies, before the framework reads them into memory."""

from __future__ import annotations

import re

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from analyst_service.errors import problem_response
from clustering_protocols.errors import TooLarge

_UPLOAD = re.compile(r"/v1/sessions/[^/]+/rounds/\d+/attempts/\d+/contribution")


class BoundedBodies:
    """Refuses JSON bodies over a limit; uploads have a limit of their own.

    The path decides, not the Content-Type: the framework reads whatever is sent to a
    JSON endpoint.
    """

    def __init__(self, app: ASGIApp, max_json_bytes: int) -> None:
        self._app = app
        self._limit = max_json_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, counting what is read of its body."""
        if scope["type"] != "http" or _UPLOAD.fullmatch(scope["path"]):
            await self._app(scope, receive, send)
            return
        length = Headers(scope=scope).get("content-length", "0")
        if length.isdigit() and int(length) > self._limit:
            error = TooLarge(f"{length} bytes; at most {self._limit}.")
            await problem_response(error.problem, error.detail)(scope, receive, send)
            return
        await self._app(scope, self._counted(receive), send)

    def _counted(self, receive: Receive) -> Receive:
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._limit:
                # of other exceptions the framework makes a 400
                status = TooLarge.problem.status
                raise HTTPException(status, f"More than {self._limit} bytes")
            return message

        return counted
