"""The page of own visits: browsers that are signed in, and a way to end each."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from analyst_service.dashboard.routes import (
    ROOT,
    FormCheck,
    PageRoute,
    VisitorDep,
    page,
    to,
    visits,
)
from analyst_service.dashboard.views import visits_page
from analyst_service.requests.deps import ServiceDep

router = APIRouter(
    prefix=f"{ROOT}/visits", include_in_schema=False, route_class=PageRoute
)

VisitId = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")]


@router.get("")
def get_visits(request: Request, visitor: VisitorDep, service: ServiceDep) -> Response:
    """Show the browsers that are signed in with the visitor's own keys."""
    with service.database.read() as transaction:
        found = visits(transaction, service).own(visitor.caller)
        shown = visits_page(found, visitor)
    return page(request, shown, visitor)


@router.post("/{visit_id}/end", dependencies=[FormCheck])
def post_end(visit_id: VisitId, visitor: VisitorDep, service: ServiceDep) -> Response:
    """End one of them."""
    service.database.transact(
        lambda transaction: visits(transaction, service).end_own(
            visitor.caller, visit_id
        )
    )
    return to(f"{ROOT}/visits")
