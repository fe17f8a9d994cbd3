"""Signing in and out, and what pages load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from analyst_service.auth.service import CredentialRefused
from analyst_service.dashboard.form_answers import refuse_form
from analyst_service.dashboard.routes import (
    ANY,
    HOME,
    ROOT,
    SIGN_IN,
    FormCheck,
    PageRoute,
    StrangerDep,
    VisitorCheck,
    cookie_of,
    drop,
    keep,
    page,
    read_form,
    refusal,
    to,
    visits,
)
from analyst_service.requests.deps import ServiceDep
from analyst_service.transactions.administrative_log import Act
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import Unauthenticated
from coterie_pages.models.screens import SignIn
from coterie_pages.served_pages import asset

router = APIRouter(prefix=ROOT, include_in_schema=False, route_class=PageRoute)


@router.get("", dependencies=[VisitorCheck])
def get_home() -> Response:
    """Lead to the sessions."""
    return to(HOME)


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
    try:
        secret = service.database.transact(
            lambda transaction: visits(transaction, service).begin(
                fields.get("key", "").strip(), cookie_of(request)
            )
        )
    except Unauthenticated as error:
        if isinstance(error, CredentialRefused):
            service.note_stranger(Act.SIGN_IN_REFUSED, credential=error.credential_id)
        return refuse_form(
            request,
            SIGN_IN,
            error.problem,
            "This is no key, or it has expired or was revoked.",
            "Paste it whole, as 'coterie key create' printed it; an administrator makes "
            "a new one.",
        )
    response = to(HOME)
    keep(request, response, secret, service.settings.visit_seconds)
    return response


@router.post("/sign-out", dependencies=[FormCheck])
def post_sign_out(request: Request, service: ServiceDep) -> Response:
    """End the visit, here and in the browser."""
    service.database.transact(
        lambda transaction: visits(transaction, service).end(cookie_of(request))
    )
    response = to(SIGN_IN)
    drop(request, response)
    return response


nothing = APIRouter(prefix=ROOT, include_in_schema=False, route_class=PageRoute)


@nothing.get(ANY.removeprefix(ROOT), dependencies=[StrangerDep])
def get_nothing(request: Request) -> Response:
    """Say that there is no such page, in the looks of those that there are."""
    return refusal(request, Problem.NOT_FOUND, "Nothing has this address.")
