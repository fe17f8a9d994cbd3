"""Pages that answer forms: kept for the visit, and shown at an address of their own."""

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

from coterie_pages.served_pages import HEADERS

SEE_OTHER: Final = 303
"""The status that leads from a form to a page, which is asked for by GET."""

ANSWERED: Final = "answered"
"""The parameter of an address that names a kept answer."""
MOST: Final = 16
MOST_BYTES: Final = 32 * 2**20
_NAME_BYTES: Final = 12

AddressOf = Callable[[Request], str]


def page_above(path: str, is_page: Callable[[str], bool]) -> str:
    """Return the page on which an answer is shown: the nearest one from a form's path up.

    path: where the form was sent, without a query.
    is_page: whether a path is one that people look at.
    """
    while path.strip("/") and not is_page(path):
        path = path.rpartition("/")[0]
    return path or "/"


def is_page(status: int, headers: Mapping[str, str]) -> bool:
    """Return whether an answer would be shown as a page: no way elsewhere, and no file.

    headers: with names in small letters.
    """
    return (
        not 300 <= status < 400
        and headers.get("content-type", "").startswith("text/html")
        and "content-disposition" not in headers
    )


class FormAnswers:
    """The last answers to forms of one visit, in this process's memory alone.

    At most 16 pages and 32 MiB are kept; the oldest goes first.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Response] = OrderedDict()
        self._lock = Lock()

    def keep(self, answer: Response) -> str:
        """Return a drawn name, under which an answer is found from now on."""
        name = secrets.token_urlsafe(_NAME_BYTES)
        with self._lock:
            self._kept[name] = answer
            while len(self._kept) > 1 and self._is_full():
                self._kept.popitem(last=False)
        return name

    def find(self, name: str) -> Response | None:
        """Return the answer of a name; None if it is kept no longer."""
        return self._kept.get(name)

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._kept.clear()

    def _is_full(self) -> bool:
        size = sum(len(each.body) for each in self._kept.values())
        return len(self._kept) > MOST or size > MOST_BYTES


class AnswersByGet:
    """Pages, none of which is the answer to a form: each is shown by GET.

    address_of: returns the address of the page on which the answer to a form is shown.
    """

    def __init__(self, app: ASGIApp, kept: FormAnswers, address_of: AddressOf) -> None:
        self._app, self._kept, self._address_of = app, kept, address_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope, receive)
        if request.method != "POST":
            answer = self._find(request) or self._app
            await answer(scope, receive, send)
            return
        answered: list[Message] = []

        async def collect(message: Message) -> None:
            answered.append(message)

        try:
            await self._app(scope, receive, collect)
        finally:  # a page with a defect is answered before the defect is raised
            if answered:
                shown = self.show(request, _response_of(answered))
                await shown(scope, receive, send)

    def show(self, request: Request, answer: Response) -> Response:
        """Return the way to the page of an answer to a form; others as they are."""
        if not is_page(answer.status_code, answer.headers):
            return answer
        query = urlencode({ANSWERED: self._kept.keep(answer)})
        return see_other(f"{self._address_of(request)}?{query}")

    def _find(self, request: Request) -> Response | None:
        """Return the kept answer that an address names; None where it names none.

        One that is kept no longer leads to the page of that address as it is now.
        """
        fields = parse_qsl(request.url.query, keep_blank_values=True)
        named = [value for name, value in fields if name == ANSWERED]
        if not named:
            return None
        left = urlencode([field for field in fields if field[0] != ANSWERED])
        path = request.url.path
        return self._kept.find(named[0]) or see_other(
            f"{path}?{left}" if left else path
        )


def see_other(address: str) -> Response:
    """Return the way to a page, which is asked for by GET."""
    return RedirectResponse(address, SEE_OTHER, headers=dict(HEADERS))


def _response_of(messages: list[Message]) -> Response:
    """Return the whole answer that an application sent."""
    first, *pieces = messages
    answer = Response(
        b"".join(piece.get("body", b"") for piece in pieces), first["status"]
    )
    answer.raw_headers = list(first["headers"])
    return answer
