"""Responses to forms: stored for the visit, and shown after a redirect to a page."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Final
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SEE_OTHER: Final = 303
"""The status that redirects from a form to a page."""

ANSWER_PARAMETER: Final = "answered"
"""The query parameter with the name of a stored response."""
MAX_ANSWERS: Final = 16
MAX_BYTES: Final = 32 * 2**20
_NAME_BYTES: Final = 12

AddressOf = Callable[[Request], str]


def page_above(path: str, is_page: Callable[[str], bool]) -> str:
    """Return the page that shows a form's response: the nearest page above its path."""
    while path.strip("/") and not is_page(path):
        path = path.rpartition("/")[0]
    return path or "/"


def is_page(status: int, headers: Mapping[str, str]) -> bool:
    """Return whether a response is a page, neither a redirect nor a download.

    headers: with names in lower case.
    """
    return (
        not 300 <= status < 400
        and headers.get("content-type", "").startswith("text/html")
        and "content-disposition" not in headers
    )


class FormAnswers:
    """The last responses to forms of one visit, in memory: at most 16 and 32 MiB."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, Response] = OrderedDict()
        self._lock = Lock()

    def keep(self, answer: Response) -> str:
        """Store a response, and return its random name."""
        name = secrets.token_urlsafe(_NAME_BYTES)
        with self._lock:
            self._answers[name] = answer
            while len(self._answers) > 1 and (
                len(self._answers) > MAX_ANSWERS
                or sum(len(response.body) for response in self._answers.values())
                > MAX_BYTES
            ):
                self._answers.popitem(last=False)
        return name

    def find(self, name: str) -> Response | None:
        """Return the response of a name, or None if it is gone."""
        return self._answers.get(name)

    def clear(self) -> None:
        """Forget all responses."""
        with self._lock:
            self._answers.clear()


class PostRedirectGet:
    """Middleware that redirects from each form to a page which shows its response.

    address_of: returns the address of that page.
    """

    def __init__(
        self, app: ASGIApp, answers: FormAnswers, address_of: AddressOf
    ) -> None:
        self._app, self._answers, self._address_of = app, answers, address_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope, receive)
        if request.method != "POST":
            answer = self._find(request) or self._app
            await answer(scope, receive, send)
            return
        messages: list[Message] = []

        async def collect(message: Message) -> None:
            messages.append(message)

        try:
            await self._app(scope, receive, collect)
        finally:  # the page about a defect is sent before the exception is raised
            if messages:
                redirect = self.show(request, _response_of(messages))
                await redirect(scope, receive, send)

    def show(self, request: Request, answer: Response) -> Response:
        """Store a page and return a redirect to it; return other responses unchanged."""
        if not is_page(answer.status_code, answer.headers):
            return answer
        query = urlencode({ANSWER_PARAMETER: self._answers.keep(answer)})
        return see_other(f"{self._address_of(request)}?{query}")

    def _find(self, request: Request) -> Response | None:
        """Return the stored response that the query names, or None if it names none.

        If the response is gone, return a redirect to the address without its name.
        """
        fields = parse_qsl(request.url.query, keep_blank_values=True)
        names = [value for name, value in fields if name == ANSWER_PARAMETER]
        if not names:
            return None
        other_fields = urlencode(
            [field for field in fields if field[0] != ANSWER_PARAMETER]
        )
        path = request.url.path
        return self._answers.find(names[0]) or see_other(
            f"{path}?{other_fields}" if other_fields else path
        )


def see_other(address: str) -> Response:
    """Return a redirect that the browser follows by GET."""
    return RedirectResponse(address, SEE_OTHER)


def _response_of(messages: list[Message]) -> Response:
    first, *pieces = messages
    answer = Response(
        b"".join(piece.get("body", b"") for piece in pieces), first["status"]
    )
    answer.raw_headers = list(first["headers"])
    return answer
