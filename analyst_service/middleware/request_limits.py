"""Bounds on headers, and on how many requests are under way: in all, and of each sender.

One pot for strangers and one for callers who show a credential, so that neither those
nor one of these can use up what the others need. All of it runs in the event loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final, NamedTuple

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from analyst_service.errors import problem_response
from analyst_service.settings import Settings
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import TooManyRequests

_HEADER_BYTES: Final = 32 << 10  # headers and address
_KEY = "coterie.visit"
_CREDENTIALED = "/v1/sessions"


def is_strangers(scope: Scope) -> bool:
    """Return whether a request shows no credential, or asks where none is needed."""
    path: str = scope["path"]
    return not path.startswith(_CREDENTIALED) or "authorization" not in Headers(
        scope=scope
    )


def address(scope: Scope) -> str:
    """Return by what name a stranger is counted."""
    client = scope.get("client")
    return f"address {client[0] if client else ''}"


class Pot:
    """Counts of requests under way.

    most: of all senders together.
    most_each, most_waiting: of one sender: that are served, and that wait for news in a
        long poll.
    """

    def __init__(self, most: int, most_each: int, most_waiting: int = 0) -> None:
        self._most, self._most_each = most, most_each
        self.most_waiting = most_waiting
        self._number = 0
        self._served: Counter[str] = Counter()
        self.waiting: Counter[str] = Counter()

    @contextmanager
    def visit(self, scope: Scope) -> Iterator[Visit]:
        """Take a place for a request; :class:`TooManyRequests` if there is none."""
        if self._number >= self._most:
            raise TooManyRequests("The service is at its limit.")
        visit = Visit(self)
        scope[_KEY] = visit
        self._number += 1
        try:
            yield visit
        finally:
            self.leave(visit.sender)

    def name(self, sender: str) -> None:
        """Count a request that has its place as one of a sender's."""
        if self._served[sender] >= self._most_each:
            raise TooManyRequests(f"More than {self._most_each} at once.")
        self._served[sender] += 1

    def leave(self, sender: str | None) -> None:
        """Give a place up."""
        self._number -= 1
        if sender is not None:
            self._less(self._served, sender)

    def come_back(self, sender: str) -> None:
        """Take a place again after waiting; those who waited are not turned away."""
        self._number += 1
        self._served[sender] += 1
        self._less(self.waiting, sender)

    @staticmethod
    def _less(counts: Counter[str], sender: str) -> None:
        counts[sender] -= 1
        if not counts[sender]:
            del counts[sender]  # senders come and go: nothing is kept of them


class Visit:
    """One request's place in its pot."""

    def __init__(self, pot: Pot) -> None:
        self._pot = pot
        self.sender: str | None = None

    @staticmethod
    def of(scope: Scope) -> Visit:
        """Return the visit of a request."""
        visit: Visit = scope[_KEY]
        return visit

    def name(self, sender: str) -> None:
        """Say who sends; :class:`TooManyRequests` if he has too many under way."""
        self._pot.name(sender)
        self.sender = sender

    @contextmanager
    def step_aside(self) -> Iterator[bool]:
        """Give the place up while the request only waits for news.

        False, and the place is kept, if the sender has enough of them waiting.
        """
        sender, pot = self.sender, self._pot
        if sender is None or pot.waiting[sender] >= pot.most_waiting:
            yield False
            return
        pot.waiting[sender] += 1
        pot.leave(sender)
        try:
            yield True
        finally:
            pot.come_back(sender)


class Shares(NamedTuple):
    """How many requests may be under way at once.

    callers: with a credential; a long poll that waits is none of them.
    strangers: without one.
    each: of one credential, or of one stranger's address.
    waiting: long polls of one credential that are held; more are answered at once.
    """

    callers: int
    strangers: int
    each: int
    waiting: int


def share_out(max_requests: int) -> Shares:
    """Return who may have how many of the requests that a process takes at once."""
    return Shares(
        max_requests, max(1, max_requests // 2), max(1, max_requests // 10), 32
    )


class RequestLimits:
    """Refuses at once what this process cannot take; nothing is queued."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        most, strangers, each, waiting = share_out(settings.max_requests)
        self._callers = Pot(most, each, waiting)
        self._strangers = Pot(strangers, each)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, if there is room for it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if _is_oversized(scope):
            refusal = problem_response(
                Problem.HEADER_TOO_LARGE, f"More than {_HEADER_BYTES} bytes."
            )
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


def _is_oversized(scope: Scope) -> bool:
    size = sum(len(name) + len(value) for name, value in scope["headers"])
    size += len(scope["path"]) + len(scope["query_string"])
    return size > _HEADER_BYTES
