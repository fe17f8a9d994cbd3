"""Bounds on headers, and on how many requests are under way at once."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from analyst_service.errors import problem_response
from analyst_service.settings import Settings
from clustering_protocols.problems import Problem


class RequestLimits:
    """Refuses at once what this process cannot take; nothing is queued."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, if there is room for it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = self._refusal(scope)
        if refused is not None:
            await problem_response(*refused)(scope, receive, send)
            return
        self._under_way += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._under_way -= 1

    def _refusal(self, scope: Scope) -> tuple[Problem, str] | None:
        limit = self._settings.max_header_bytes
        size = sum(len(name) + len(value) for name, value in scope["headers"])
        if size + len(scope["path"]) + len(scope["query_string"]) > limit:
            return Problem.HEADER_TOO_LARGE, f"More than {limit} bytes."
        if self._under_way >= self._settings.max_requests:
            return Problem.TOO_MANY_REQUESTS, "The service is at its limit."
        return None
