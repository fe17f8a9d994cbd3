"""What an upload is answered with: a receipt, and the next task for who waits for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from fastapi import Request, Response

from analyst_service.contributions import tasks
from analyst_service.contributions.service import Stored, TaskRequest
from analyst_service.middleware.request_limits import Visit
from analyst_service.process_context import Service
from analyst_service.requests import negotiation
from analyst_service.storage.models import Contribution
from clustering_protocols.terms.signed_logs import sign_receipt
from clustering_protocols.wire.answers import Receipt
from clustering_protocols.wire.http_headers import receipt_headers, wait_seconds


@dataclass(frozen=True, slots=True)
class UploadResponse:
    """One upload over HTTP; ``prefer`` is its header of that name."""

    service: Service
    request: Request
    response: Response
    asking: TaskRequest
    prefer: str


async def answer_upload(
    answering: UploadResponse, store: Callable[[], Awaitable[Stored]]
) -> Receipt | Response:
    """Return the answer to what is stored: 201; 200 where it was stored before."""
    service, asking = answering.service, answering.asking
    seconds = wait_seconds(answering.prefer)
    step_aside = Visit.of(answering.request.scope).step_aside
    # before the answer is stored: what follows may follow at once
    with service.notifier.subscribe(asking.caller.session_id or "") as waiter:
        stored, is_new = await store()
        answering.response.status_code = 201 if is_new else 200
        receipt = sign_receipt(service.institution, _receipt_of(stored, asking.session))
        if seconds is None:
            return receipt
        task = await tasks.wait_for_next(
            service, asking, waiter, seconds, step_aside, is_new=is_new
        )
    told = receipt_headers(receipt)
    if task is None:
        return Response(status_code=204, headers=told)
    sent = await negotiation.send_task(service, task.digest, answering.request.headers)
    sent.status_code = answering.response.status_code
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
