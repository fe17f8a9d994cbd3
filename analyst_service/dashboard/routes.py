"""What every page is made with: who looks, what a form says, and how a refusal looks."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any, Final
from urllib.parse import parse_qsl, urlsplit

from fastapi import Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from sqlalchemy.orm import Session as Transaction
from starlette.concurrency import run_in_threadpool

from analyst_service.auth.service import Role
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
    Unauthenticated,
)
from coterie_pages.models.frame import Banner, Frame, Link
from coterie_pages.models.screens import Refusal, Screen
from coterie_pages.served_pages import HEADERS

ROOT: Final = "/ui"
SIGN_IN: Final = f"{ROOT}/sign-in"
_MOST_FIELDS: Final = 40
_BY_ITSELF: Final = "hx-request"
_COOKIE: Final = "coterie-visit"
_SECURE_COOKIE: Final = f"__Host-{_COOKIE}"  # a browser takes it over TLS alone


class PageRoute(APIRoute):
    """A route of pages: what is refused is a page too, and no visit leads to the key."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, whose refusals are pages."""
        handle = super().get_route_handler()

        async def show_page(request: Request) -> Response:
            try:
                return await handle(request)
            except Unauthenticated as error:
                if request.url.path == SIGN_IN:
                    return refusal(request, error.problem, error.detail)
                note(error.problem)
                return to(SIGN_IN)
            except CoterieError as error:
                return refusal(request, error.problem, error.detail)
            except RequestValidationError:
                said = "Nothing has this address."
                return refusal(request, Problem.NOT_FOUND, said)

        return show_page


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
    notice: Banner | None = None,
    seconds: int = 0,
    waits: bool = False,
    status: int = 200,
) -> HTMLResponse:
    """Return a model as a page with its frame."""
    from coterie_pages.pages import (
        screen,
    )  # a service that shows none loads no templates

    path = request.url.path
    frame = Frame(
        place="analyst",
        root=ROOT,
        address=path,
        links=tuple(_links(visitor, path)),
        who="" if visitor is None else _describe_visitor(visitor),
        token="" if visitor is None else visitor.token,
        leave="" if visitor is None else f"{ROOT}/sign-out",
        notice=notice,
        seconds=seconds,
        waits=waits,
    )
    return HTMLResponse(screen(model, frame), status_code=status, headers=dict(HEADERS))


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
    if visitor.is_due and _BY_ITSELF not in request.headers:
        service.database.transact(lambda t: visits(t, service).put_off(secret))
    return visitor


def visits(transaction: Transaction, service: Service) -> VisitService:
    """Return the visits of a service in one transaction."""
    return VisitService(transaction, service.clock, service.settings)


VisitorDep = Annotated[Visitor, Depends(_visitor)]


async def _stranger(request: Request) -> None:
    service = parts_of(request)
    service.rates.take(address(request.scope), service.clock.now())


StrangerDep = Depends(_stranger)


async def read_form(request: Request) -> Mapping[str, str]:
    """Return the fields of a form that was sent from a page of this site.

    Raises Forbidden if another site sent it.
    Raises Malformed if it is no form, or a field stands in it twice.
    """
    _check_origin(request)
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


def _check_origin(request: Request) -> None:
    """Refuse what another site makes a browser send: browsers say whose page it was."""
    origin = request.headers.get("origin")
    if origin is None:
        sent_here = request.headers.get("sec-fetch-site") == "same-origin"
    else:
        host = request.headers.get("host", "")
        sent_here = hmac.compare_digest(_host_of(origin).encode(), host.encode())
    if not sent_here:
        raise Forbidden("The form was sent from a page of another site.")


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


FormDep = Annotated[Mapping[str, str], Depends(_form)]
