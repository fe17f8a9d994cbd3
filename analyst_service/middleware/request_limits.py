"""Bounds on headers, and on how many requests are under way at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from starlette.types import ASGIApp, Receive, Scope, Send

from analyst_service.configuration.settings import Settings
from analyst_service.errors import problem_response
from analyst_service.middleware.concurrency_limit import Pot, address, is_strangers
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import TooManyRequests


class RequestLimits:
    """Refuses at once what this process cannot take; nothing is queued."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._max_header_bytes = settings.max_header_bytes
        each, waiting = settings.max_requests_each, settings.max_waiting_each
        self._callers = Pot(settings.max_requests, each, waiting)
        self._strangers = Pot(settings.max_stranger_requests, each)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, if there is room for it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._is_oversized(scope):
            problem, detail = Problem.HEADER_TOO_LARGE, self._max_header_bytes
            refusal = problem_response(problem, f"More than {detail} bytes.")
            await refusal(scope, receive, send)
            return
        with ExitStack() as place:
            try:
                place.enter_context(self._visit(scope))
            except TooManyRequests as full:
                await problem_response(full.problem, full.detail)(scope, receive, send)
                return
            await self._app(scope, receive, send)

    @contextmanager
    def _visit(self, scope: Scope) -> Iterator[None]:
        """Count a request while it runs, a stranger's by its address.

        A caller is named by the route, once the credential is known to be one.
        """
        is_stranger = is_strangers(scope)
        pot = self._strangers if is_stranger else self._callers
        with pot.visit(scope) as visit:
            if is_stranger:
                visit.name(address(scope))
            yield

    def _is_oversized(self, scope: Scope) -> bool:
        size = sum(len(name) + len(value) for name, value in scope["headers"])
        size += len(scope["path"]) + len(scope["query_string"])
        return size > self._max_header_bytes
