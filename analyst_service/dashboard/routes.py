"""What every page is made with: who looks, what a form says, and how a refusal looks."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Annotated, Any, Final
from urllib.parse import parse_qsl, urlsplit

from fastapi import APIRouter, Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from sqlalchemy.orm import Session as Transaction
from starlette.concurrency import run_in_threadpool

from analyst_service.auth.service import Role
from analyst_service.dashboard.form_answers import (
    BY_ITSELF,
    answer_for,
    drop_answer,
    refuse_form,
)
from analyst_service.dashboard.service import Visitor, VisitService
from analyst_service.middleware.concurrency_limit import address
from analyst_service.monitoring import request_context
from analyst_service.process_context import Service
from analyst_service.requests.deps import parts_of
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import (
    CoterieError,
    Forbidden,
    Malformed,
    NotFound,
    Unauthenticated,
)
from coterie_http.form_answers import page_above
from coterie_pages.models.frame import Frame, Link
from coterie_pages.models.screens import Refusal, Screen
from coterie_pages.served_pages import HEADERS

ROOT: Final = "/ui"
HOME: Final = f"{ROOT}/sessions"
SIGN_IN: Final = f"{ROOT}/sign-in"
ANY: Final = f"{ROOT}/{{path:path}}"
"""Every address that no page has."""
_MOST_FIELDS: Final = 40
_COOKIE: Final = "coterie-visit"
_SECURE_COOKIE: Final = f"__Host-{_COOKIE}"  # a browser takes it over TLS alone


class PageRoute(APIRoute):
    """A route of pages: what is refused is a page too, and no visit leads to the key."""

    @property
    def is_shown(self) -> bool:
        """Return whether people look at it, and it is at an address of its own."""
        return "GET" in (self.methods or ()) and self.path not in {ROOT, ANY}

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, whose refusals are pages."""
        handle = super().get_route_handler()

        async def show_page(request: Request) -> Response:
            try:
                return await handle(request)
            except Unauthenticated as error:
                if request.url.path == SIGN_IN:
                    return _refuse(request, error)
                note(error.problem)
                return to(SIGN_IN)
            except CoterieError as error:
                return _refuse(request, error)
            except RequestValidationError:
                return _refuse(request, NotFound("Nothing has this address."))

        return show_page


def pages_of(routers: Iterable[APIRouter]) -> tuple[PageRoute, ...]:
    """Return what people look at, of which each has an address of its own."""
    routes = [route for router in routers for route in router.routes]
    return tuple(r for r in routes if isinstance(r, PageRoute) and r.is_shown)


def _refuse(request: Request, error: CoterieError) -> Response:
    """Return the page of a refusal; of a form of this site the way to its page."""
    if request.method != "POST" or not _is_sent_here(request):
        return refusal(request, error.problem, error.detail)
    note(error.problem)
    text = f"{error.problem.title}: {error.detail}"
    return refuse_form(request, _page_of(request), error.problem, text, error.remedy)


def _page_of(request: Request) -> str:
    """Return the page to which a form belongs."""
    pages: Sequence[PageRoute] = request.app.state.pages
    found = page_above(
        request.url.path,
        lambda path: any(route.path_regex.match(path) for route in pages),
    )
    return found if found.startswith(f"{ROOT}/") else HOME


def note(problem: Problem) -> None:
    """Write down which problem a request met."""
    request_context.current().problem = problem.slug


def refusal(request: Request, problem: Problem, detail: str) -> HTMLResponse:
    """Return the page of a problem."""
    note(problem)
    told = Refusal(
        title=problem.title,
        detail=detail,
        request=request_context.current().request_id,
    )
    visitor = getattr(request.state, "visitor", None)
    return page(request, told, visitor, status=problem.status)


def page(
    request: Request,
    model: Screen,
    visitor: Visitor | None,
    *,
    seconds: int = 0,
    waits: bool = False,
    status: int = 200,
) -> HTMLResponse:
    """Return a model as a page with its frame, and with what a form came to."""
    from coterie_pages.pages import (
        screen,
    )  # a service that shows none loads no templates

    path, answer = request.url.path, answer_for(request)
    frame = Frame(
        place="analyst",
        root=ROOT,
        address=path,
        links=tuple(_links(visitor, path)),
        who="" if visitor is None else _describe_visitor(visitor),
        token="" if visitor is None else visitor.token,
        leave="" if visitor is None else f"{ROOT}/sign-out",
        notice=None if answer is None else answer.banner,
        seconds=seconds,
        waits=waits,
    )
    shown = HTMLResponse(screen(model, frame), status, headers=dict(HEADERS))
    if answer is not None:
        shown.status_code = max(status, answer.status)
        drop_answer(request, shown)
    return shown


def to(path: str) -> RedirectResponse:
    """Return the way to another page, to be asked for by GET."""
    return RedirectResponse(path, status_code=303, headers=dict(HEADERS))


def _links(visitor: Visitor | None, path: str) -> list[Link]:
    if visitor is None:
        return []
    known = {"Sessions": "sessions"}
    if visitor.caller.role is Role.ADMINISTRATOR:
        known["Keys"] = "keys"
    known["Visits"] = "visits"
    return [
        Link(href=f"{ROOT}/{p}", text=text, here=path.startswith(f"{ROOT}/{p}"))
        for text, p in known.items()
    ]


def _describe_visitor(visitor: Visitor) -> str:
    return (
        f"{visitor.label} ({visitor.caller.role})"
        if visitor.label
        else (visitor.caller.role.value)
    )


# Cookies


def cookie_of(request: Request) -> str:
    """Return the secret of the visit that a browser shows; empty where it shows none."""
    name = _SECURE_COOKIE if is_secure(request) else _COOKIE
    return request.cookies.get(name, "")


def keep(request: Request, response: Response, secret: str, seconds: int) -> None:
    """Let the browser keep the secret of a visit, out of reach of scripts and sites."""
    secure = is_secure(request)
    response.set_cookie(
        _SECURE_COOKIE if secure else _COOKIE,
        secret,
        max_age=seconds,
        path="/" if secure else ROOT,
        secure=secure,
        httponly=True,
        samesite="strict",
    )


def drop(request: Request, response: Response) -> None:
    """Let the browser forget the secret of a visit."""
    keep(request, response, "", 0)


def is_secure(request: Request) -> bool:
    """Return whether the browser speaks TLS, to this service or to its proxy."""
    return request.url.scheme == "https"  # of a proxy only where it is trusted


# What endpoints ask for


async def _visitor(request: Request) -> Visitor:
    return await run_in_threadpool(_look_up, request)


def _look_up(request: Request) -> Visitor:
    service, secret = parts_of(request), cookie_of(request)
    with service.database.read() as transaction:
        try:
            visitor = visits(transaction, service).visitor(secret)
        except Unauthenticated:
            service.rates.take(address(request.scope), service.clock.now())
            raise
    caller = visitor.caller
    request_context.current().caller = caller.credential_id
    service.count(caller.credential_id)
    request.state.visitor = visitor
    # a page that asks by itself is no sign of a person
    if visitor.is_due and BY_ITSELF not in request.headers:
        service.database.transact(lambda t: visits(t, service).put_off(secret))
    return visitor


def visits(transaction: Transaction, service: Service) -> VisitService:
    """Return the visits of a service in one transaction."""
    return VisitService(transaction, service.clock, service.settings)


VisitorCheck = Depends(_visitor)
VisitorDep = Annotated[Visitor, VisitorCheck]


async def _stranger(request: Request) -> None:
    service = parts_of(request)
    service.rates.take(address(request.scope), service.clock.now())


StrangerDep = Depends(_stranger)


async def read_form(request: Request) -> Mapping[str, str]:
    """Return the fields of a form that was sent from a page of this site.

    Raises Forbidden if another site sent it.
    Raises Malformed if it is no form, or a field stands in it twice.
    """
    if not _is_sent_here(request):
        raise Forbidden("The form was sent from a page of another site.")
    try:
        pairs = parse_qsl(
            (await request.body()).decode(),
            keep_blank_values=True,
            strict_parsing=True,
            max_num_fields=_MOST_FIELDS,
        )
    except ValueError:
        raise Malformed("This is no form.") from None
    if len(fields := dict(pairs)) < len(pairs):
        raise Malformed("A field stands in the form twice.")
    return fields


def _is_sent_here(request: Request) -> bool:
    """Return whether a form is of a page of this site: browsers say whose page it was."""
    origin = request.headers.get("origin")
    if origin is None:
        return request.headers.get("sec-fetch-site") == "same-origin"
    host = request.headers.get("host", "")
    return hmac.compare_digest(_host_of(origin).encode(), host.encode())


def _host_of(origin: str) -> str:
    """Return the host and port of an origin; empty for what is none."""
    try:
        return urlsplit(origin).netloc
    except ValueError:  # a bracket that is never closed
        return ""


async def _form(request: Request, visitor: VisitorDep) -> Mapping[str, str]:
    fields = dict(await read_form(request))
    visitor.check(fields.pop("token", ""))
    return fields


FormCheck = Depends(_form)
FormDep = Annotated[Mapping[str, str], FormCheck]
