"""Tasks and contributions over HTTP."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Path, Query, Request, Response

from analyst_service.contributions import tasks, uploads
from analyst_service.contributions.service import TaskRequest
from analyst_service.middleware.request_limits import Visit
from analyst_service.requests import negotiation
from analyst_service.requests.deps import (
    AdmittingRoute,
    CallerDep,
    ServiceDep,
    SessionID,
)
from analyst_service.storage.models import Contribution
from clustering_protocols.terms.signed_logs import sign_receipt
from clustering_protocols.wire.answers import Receipt
from clustering_protocols.wire.http_headers import receipt_headers, wait_seconds

router = APIRouter(
    prefix="/v1/sessions/{session_id}", tags=["rounds"], route_class=AdmittingRoute
)

Number = Annotated[int, Path(ge=1, lt=2**31)]
Prefer = Annotated[
    str,
    Header(description="'wait=20': hold the request for the next task (RFC 7240)."),
]
ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    201: {"model": Receipt},
    204: {
        "description": "With `Prefer: wait`: stored, and nothing to do yet. Where "
        "there is a task in time it is the body, under 200 or 201, of the same form "
        "as that of GET task; the receipt is in the header Coterie-Receipt."
    },
}


@router.get(
    "/task",
    response_class=Response,
    responses={
        200: negotiation.RESPONSE,
        204: {"description": "Nothing to do yet; ask again."},
    },
)
async def get_task(
    session_id: SessionID,
    request: Request,
    caller: CallerDep,
    service: ServiceDep,
    wait: Annotated[float, Query(ge=0, description="Seconds to hold the request.")] = 0,
) -> Response:
    """Return the caller's open task; hold the request for a while if there is none."""
    step_aside = Visit.of(request.scope).step_aside
    asking = TaskRequest(caller, session_id)
    with service.notifier.subscribe(caller.session_id or "") as waiter:
        task = await tasks.wait_for_task(service, asking, waiter, wait, step_aside)
    if task is None:
        return Response(status_code=204, headers={"Retry-After": "1"})
    return await negotiation.send_task(service, task.digest, request.headers)


@router.put(
    "/rounds/{round_}/attempts/{attempt}/contribution",
    response_model=Receipt,
    responses=ANSWERS,
    openapi_extra={"requestBody": negotiation.REQUEST},
)
async def put_contribution(
    session_id: SessionID,
    round_: Number,
    attempt: Number,
    request: Request,
    response: Response,
    caller: CallerDep,
    service: ServiceDep,
    prefer: Prefer = "",
) -> Receipt | Response:
    """Store the caller's answer: 201; the same bytes again: 200, the same receipt.

    One request a round is enough for who prefers to wait for the next task.
    """
    body = await uploads.open_body(request, service.settings)
    step_aside = Visit.of(request.scope).step_aside
    # before the answer is stored: what follows may follow at once
    with service.notifier.subscribe(caller.session_id or "") as waiter:
        stored, is_new = await uploads.store(
            service, caller, session_id, round_, attempt, body
        )
        response.status_code = 201 if is_new else 200
        receipt = sign_receipt(service.institution, _receipt_of(stored, session_id))
        if (seconds := wait_seconds(prefer)) is None:
            return receipt
        asking = TaskRequest(caller, session_id)
        task = await tasks.wait_for_next(
            service, asking, waiter, seconds, step_aside, is_new=is_new
        )
    told = receipt_headers(receipt)
    if task is None:
        return Response(status_code=204, headers=told)
    sent = await negotiation.send_task(service, task.digest, request.headers)
    sent.status_code = response.status_code
    sent.headers.update(told)
    return sent


def _receipt_of(contribution: Contribution, session: str) -> Receipt:
    return Receipt(
        session=session,
        slot=contribution.slot,
        round=contribution.round,
        attempt=contribution.attempt,
        digest=contribution.digest,
        size=contribution.size,
        received_at=contribution.received_at,
        sequence=contribution.sequence,
        entry=contribution.entry,
    )
