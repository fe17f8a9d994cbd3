"""Tasks and contributions over HTTP."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from sqlalchemy.orm import Session as Transaction
from starlette.concurrency import run_in_threadpool

from analyst_service import negotiation
from analyst_service.auth.service import Caller
from analyst_service.blobs import Draft
from analyst_service.blobs.claims import claim
from analyst_service.contributions import uploads
from analyst_service.contributions.schemas import Receipt
from analyst_service.contributions.service import (
    Asked,
    ContributionService,
    Place,
    check_draft,
)
from analyst_service.deps import (
    AdmittingRoute,
    CallerDep,
    ServiceDep,
    SessionID,
)
from analyst_service.middleware.pots import Visit
from analyst_service.models import Task
from analyst_service.process_context import Service

router = APIRouter(
    prefix="/v1/sessions/{session_id}", tags=["rounds"], route_class=AdmittingRoute
)

_LOOK_SECONDS = 5.0  # where no driver rings, one looks all the same
Number = Annotated[int, Path(ge=1, lt=2**31)]


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
    loop = asyncio.get_running_loop()
    until = loop.time() + min(wait, service.settings.max_wait_seconds)
    with service.notifier.subscribe(session_id) as waiter:
        while True:
            task = await run_in_threadpool(_task, service, caller, session_id)
            if task is not None:
                return negotiation.send_blob(service, task.digest, request.headers)
            left = until - loop.time()
            if left <= 0:
                return Response(status_code=204, headers={"Retry-After": "1"})
            # a place among the requests under way is for those that are served
            with Visit.of(request.scope).waiting() as is_held:
                if not is_held:
                    return Response(status_code=204, headers={"Retry-After": "1"})
                await waiter.wait(min(left, _LOOK_SECONDS))


@router.put(
    "/rounds/{round_}/attempts/{attempt}/contribution",
    responses={201: {"model": Receipt}},
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
) -> Receipt:
    """Store the caller's answer: 201; the same bytes again: 200, the same receipt."""
    body, length, announced = await uploads.open_body(request, service.settings)
    place = Place(session_id, round_, attempt)
    admitted = await run_in_threadpool(_admit, service, caller, place, announced)
    draft = service.blobs.draft()
    try:
        found = await uploads.receive(body, draft, length)
        uploads.check_digest(announced, found)
        if isinstance(admitted, Receipt):
            return admitted
        receipt, is_new = await run_in_threadpool(
            _keep, service, caller, place, admitted, draft, found
        )
    finally:
        draft.discard()
    response.status_code = 201 if is_new else 200
    return receipt


def _task(service: Service, caller: Caller, session_id: str) -> Task | None:
    with service.database.read() as transaction:
        task = ContributionService(transaction, service.clock).task(caller, session_id)
    if task is not None and task.sent_at is None:
        service.database.transact(
            lambda transaction: ContributionService(
                transaction, service.clock
            ).note_sent(task)
        )
    return task


def _admit(
    service: Service, caller: Caller, place: Place, digest: str
) -> Receipt | Asked:
    """Return the receipt of a repeat; refuse what cannot be stored, before the body."""
    with service.database.read() as transaction:
        found = ContributionService(transaction, service.clock).admit(
            caller, place, digest
        )
    return found if isinstance(found, Asked) else Receipt.of(found)


def _keep(
    service: Service,
    caller: Caller,
    place: Place,
    asked: Asked,
    draft: Draft,
    digest: str,
) -> tuple[Receipt, bool]:
    """Check the bytes, make them a blob, store the row: one transaction."""
    check_draft(asked, draft, service.blobs.map)

    def store(transaction: Transaction) -> tuple[Receipt, bool, bool]:
        claim(transaction, [digest])
        contributions = ContributionService(transaction, service.clock)
        contribution, is_new = contributions.store(caller, place, digest, draft.size)
        if is_new:
            draft.keep()
        return (
            Receipt.of(contribution),
            is_new,
            contributions.is_complete(place.session_id),
        )

    receipt, is_new, is_complete = service.database.transact(store)
    if is_complete:
        service.notifier.notify_driver()
    return receipt, is_new
