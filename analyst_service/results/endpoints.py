"""Results over HTTP."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from sqlalchemy.orm import Session as Transaction

from analyst_service.requests import negotiation
from analyst_service.requests.deps import (
    AdmittingRoute,
    CallerDep,
    ServiceDep,
    SessionID,
)
from analyst_service.results.service import ResultService

router = APIRouter(
    prefix="/v1/sessions/{session_id}", tags=["results"], route_class=AdmittingRoute
)


@router.get(
    "/result",
    response_class=Response,
    responses={200: negotiation.RESPONSE},
)
def get_result(
    session_id: SessionID, request: Request, caller: CallerDep, service: ServiceDep
) -> Response:
    """Return a party's own result; to the coordinator, the summary."""

    def hand_out(transaction: Transaction) -> str:
        return ResultService(transaction, service.clock).hand_out(caller, session_id)

    digest = service.database.transact(hand_out)
    return negotiation.send_blob(service, digest, request.headers)
