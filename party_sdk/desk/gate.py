"""Middleware that authenticates and validates each request before it reaches a page."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clustering_protocols.common.errors import InvalidParameters, Unauthenticated
from coterie_pages.models import Frame, Refusal
from coterie_pages.served_pages import HEADERS, find_asset
from party_sdk.desk.form_answers import see_other
from party_sdk.desk.responses import Desk, Form, redirect_to_page, render_in_frame
from party_sdk.home.process_exit import error_location

COOKIE: Final = "coterie-desk"
MAX_BYTES: Final = 65_536
_MAX_FIELDS: Final = 2_000  # a form has one checkbox per column of a table
GOODBYE_PATH: Final = "/left"
"""The page shown after a visit ends, which needs no authentication."""
_OPEN: Final = "/open/"
_STATIC: Final = "/static/"
_FORM: Final = "application/x-www-form-urlencoded"
_NEW_LINK: Final = "Run 'coterie ui' again: it shows a new link."


class RequestRefused(Exception):
    """Raised if a request is refused; ``refusal`` is the page to show instead."""

    def __init__(self, status: int, title: str, detail: str, remedy: str) -> None:
        super().__init__(title)
        self.status = status
        self.refusal = Refusal(title=title, detail=detail, remedy=remedy)


class AuthMiddleware:
    """Passes the visitor's requests on to the pages, and answers all others itself.

    app: the application that serves the pages.
    say: called with the type and location of an unexpected error, but no values.
    """

    def __init__(self, app: ASGIApp, desk: Desk, say: Callable[[str], None]) -> None:
        self._pages, self._desk, self._say = app, desk, say

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an ASGI request."""
        if scope["type"] != "http":
            return
        request, send = Request(scope, receive), _add_headers(send)
        try:
            answer = await self._answer_or_admit(request)
        except RequestRefused as denial:
            answer = self._render_refusal(request, denial)
        except ClientDisconnect:
            return
        if answer is not None:
            await answer(scope, receive, send)
            return
        try:
            await self._pages(scope, receive, send)
        except Exception as error:  # noqa: BLE001  the page about it was sent
            self._say(f"defect: {error_location(error)}")

    def _render_refusal(self, request: Request, denial: RequestRefused) -> Response:
        page = render_in_frame(denial.refusal, Frame(), denial.status)
        if request.method != "POST":
            return page
        if denial.status == HTTPStatus.UNAUTHORIZED:
            return see_other(request.url.path)  # the GET gets the same refusal
        if not hasattr(request.state, "token"):
            return page
        return redirect_to_page(request, self._desk, page)

    async def _answer_or_admit(self, request: Request) -> Response | None:
        path = request.url.path
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or hosts[0] not in self._desk.hosts:  # blocks DNS rebinding
            raise RequestRefused(
                421,
                "This is not the desk's address",
                "Open it as 127.0.0.1, from this machine.",
                "Open the link that the terminal shows.",
            )
        if request.method not in {"GET", "POST"}:
            raise RequestRefused(
                405, "This method is not supported", "Use GET or POST.", ""
            )
        if request.method == "GET" and path.startswith(_OPEN):
            return self._begin_visit(path.removeprefix(_OPEN))
        if request.method == "GET" and path == GOODBYE_PATH:
            return render_in_frame(_GOODBYE, Frame())
        name = path.removeprefix(self._desk.root).removeprefix(_STATIC)
        is_asset = path in {f"{self._desk.root}{_STATIC}{name}", _STATIC + name}
        if request.method == "GET" and is_asset and (found := find_asset(name)):
            return Response(found.content, headers=found.headers)
        if not path.startswith(f"{self._desk.root}/"):
            raise RequestRefused(
                404,
                "There is no page at this address",
                "The desk can only be opened with the link that the terminal shows.",
                _NEW_LINK,
            )
        await self._admit(request)
        if request.method == "POST":
            return None
        return self._desk.visits.answers.respond_again(request)

    def _begin_visit(self, token: str) -> Response:
        try:
            self._desk.openings.consume_token(token)
        except Unauthenticated as error:
            raise RequestRefused(
                401, "This link is not valid", error.detail, _NEW_LINK
            ) from None
        response = see_other(f"{self._desk.root}/")
        response.set_cookie(
            COOKIE,
            self._desk.visits.begin(),
            path=f"{self._desk.root}/",
            httponly=True,
            samesite="strict",
        )
        return response

    async def _admit(self, request: Request) -> None:
        try:
            token = self._desk.visits.admit(
                request.cookies.get(COOKIE, ""),
                is_refresh="hx-request" in request.headers,
            )
        except Unauthenticated:
            raise RequestRefused(
                401,
                "This visit has ended",
                "There was no activity for a while, or the desk was opened again. "
                "Orders continue to run.",
                _NEW_LINK,
            ) from None
        query = parse_qsl(request.url.query, keep_blank_values=True)
        request.state.token, request.state.form = token, Form.of(query)
        if request.method == "POST":
            # another site could make the browser submit a form
            origin = request.headers.get("origin", "")
            own_origin = f"http://{request.headers['host']}"
            if not hmac.compare_digest(origin.encode(), own_origin.encode()):
                raise _form_refusal(403, "It was sent from a page of another site.")
            fields = await _read_form(request)
            try:
                own_token = fields.get("token").encode()
            except InvalidParameters as error:
                raise _form_refusal(403, error.detail) from None
            if not hmac.compare_digest(own_token, token.encode()):
                raise _form_refusal(403, "The form belongs to another visit.")
            request.state.form = fields


_GOODBYE: Final = Refusal(
    title="You left the desk",
    detail="Orders run as long as 'coterie ui' does.",
    remedy=_NEW_LINK,
)


def _form_refusal(status: int, detail: str) -> RequestRefused:
    remedy = "Go back, and send the form from the page itself."
    return RequestRefused(status, "The form was not accepted", detail, remedy)


async def _read_form(request: Request) -> Form:
    if request.headers.get("content-type", "").partition(";")[0].strip() != _FORM:
        raise _form_refusal(415, "It was not sent as a form.")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BYTES:
            raise RequestRefused(
                413,
                "This form is too large",
                f"A form may have at most {MAX_BYTES // 1024} KiB.",
                "Name a table by its path: files are not sent.",
            )
    try:
        pairs = parse_qsl(
            body.decode(),
            keep_blank_values=True,
            strict_parsing=True,
            max_num_fields=_MAX_FIELDS,
            errors="strict",
        )
    except ValueError:
        raise _form_refusal(400, "It cannot be read.") from None
    return Form.of(pairs)


def _add_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers
