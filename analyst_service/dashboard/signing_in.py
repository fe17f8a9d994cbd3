"""Signing in and out, and what pages load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from analyst_service.administration import Act
from analyst_service.auth.service import AuthService
from analyst_service.dashboard.routes import (
    ROOT,
    FormDep,
    PageRoute,
    StrangerDep,
    VisitorDep,
    cookie_of,
    drop,
    keep,
    page,
    read_form,
    refusal,
    to,
)
from analyst_service.dashboard.service import VisitService
from analyst_service.deps import ServiceDep
from analyst_service.process_context import Service
from clustering_protocols.errors import Forbidden, Unauthenticated
from clustering_protocols.problems import Problem
from coterie_pages.models.frame import Notice
from coterie_pages.models.screens import SignIn
from coterie_pages.served import asset

router = APIRouter(prefix=ROOT, include_in_schema=False, route_class=PageRoute)

_HOME = f"{ROOT}/sessions"


@router.get("")
def get_home(visitor: VisitorDep) -> Response:
    """Lead to the sessions."""
    del visitor
    return to(_HOME)


@router.get("/static/{name}", dependencies=[StrangerDep])
def get_asset(name: str, request: Request) -> Response:
    """Return a script or a style; the same for everybody."""
    found = asset(name)
    if found is None:
        return refusal(request, Problem.NOT_FOUND, "Nothing has this address.")
    return Response(found.content, headers=found.headers)


@router.get("/sign-in", dependencies=[StrangerDep])
def get_sign_in(request: Request) -> Response:
    """Ask for a key."""
    return page(request, SignIn(), None)


@router.post("/sign-in", dependencies=[StrangerDep])
def post_sign_in(
    request: Request,
    service: ServiceDep,
    fields: Annotated[Mapping[str, str], Depends(read_form)],
) -> Response:
    """Exchange a key for a cookie that is new each time."""
    seconds = service.settings.visit_seconds

    try:
        secret = service.database.transact(
            lambda transaction: VisitService(transaction, service.clock).begin(
                fields.get("key", "").strip(), seconds, cookie_of(request)
            )
        )
    except (Unauthenticated, Forbidden) as error:
        _note_refusal(service, fields.get("key", "").strip())
        if isinstance(error, Forbidden):
            raise
        wrong = Notice(
            text="This key is unknown, expired or revoked.",
            remedy="Paste it whole, as 'coterie key create' printed it; an administrator "
            "makes a new one.",
            good=False,
        )
        return page(request, SignIn(), None, notice=wrong, status=401)
    response = to(_HOME)
    keep(request, response, secret, seconds)
    return response


def _note_refusal(service: Service, key: str) -> None:
    """Count a refused sign-in; of a key that is known, by its id."""
    now = service.clock.now()
    with service.database.read() as transaction:
        known = AuthService(transaction, service.clock).key_of(key)
    service.strangers.note(Act.SIGN_IN_REFUSED, now, credential=known)


@router.post("/sign-out")
def post_sign_out(request: Request, service: ServiceDep, fields: FormDep) -> Response:
    """End the visit, here and in the browser."""
    del fields
    service.database.transact(
        lambda transaction: VisitService(transaction, service.clock).end(
            cookie_of(request)
        )
    )
    response = to(f"{ROOT}/sign-in")
    drop(request, response)
    return response


nothing = APIRouter(prefix=ROOT, include_in_schema=False, route_class=PageRoute)


@nothing.get("/{path:path}", dependencies=[StrangerDep])
def get_nothing(path: str, request: Request) -> Response:
    """Say that there is no such page, in the looks of those that there are."""
    del path
    return refusal(request, Problem.NOT_FOUND, "Nothing has this address.")
