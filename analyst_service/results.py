"""Results: each party its own, the coordinator a summary."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from fastapi import APIRouter, Request, Response
from sqlalchemy.orm import Session as Transaction

from analyst_service.auth.service import Caller, Role
from analyst_service.requests import (
    RESPONSE,
    AdmittingRoute,
    CallerDep,
    ServiceDep,
    SessionID,
    send_blob,
)
from analyst_service.sessions.service import SessionService, require_alive
from analyst_service.storage.models import Result, Session
from analyst_service.transactions.audit import Audit
from clustering_protocols.common.errors import NotFound, NotReady
from clustering_protocols.wire.states import SessionState

router = APIRouter(
    prefix="/v1/sessions/{session_id}", tags=["results"], route_class=AdmittingRoute
)


@router.get(
    "/result",
    response_class=Response,
    responses={200: RESPONSE},
)
def get_result(
    session_id: SessionID, request: Request, caller: CallerDep, service: ServiceDep
) -> Response:
    """Return a party's own result; to the coordinator, the summary."""

    def hand_out(transaction: Transaction) -> str:
        session = SessionService(transaction, service.clock).visible(caller, session_id)
        digest, now = _digest(transaction, caller, session), service.clock.now()
        if _mark_sent(transaction, session.id, caller.slot, now):
            Audit(transaction).append(
                session.id, "result-sent", now, slot=caller.slot, digest=digest
            )
        return digest

    digest = service.database.transact(hand_out)
    return send_blob(service, digest, request.headers)


def _digest(transaction: Transaction, caller: Caller, session: Session) -> str:
    """Return the blob of the party's own result, or of the coordinator's summary."""
    if session.state != SessionState.COMPLETED:
        require_alive(session)
        raise NotReady("The session is not complete.")
    if caller.role is Role.PARTY:
        found = transaction.get(Result, (session.id, caller.slot or ""))
        digest = found.digest if found else None
    else:
        digest = session.summary_digest
    if digest is None:
        raise NotFound("This session has no result for this credential.")
    return digest


def _mark_sent(
    transaction: Transaction, session_id: str, slot: str | None, now: datetime
) -> bool:
    """Remember that a result (without a slot: the summary) was handed out.

    False if it was before.
    """
    marked = transaction.execute(
        sa.update(Result)
        .where(
            Result.session_id == session_id,
            Result.slot == slot,
            Result.sent_at.is_(None),
        )
        .values(sent_at=now)
        .returning(Result.slot)
        if slot is not None
        else sa.update(Session)
        .where(Session.id == session_id, Session.summary_sent_at.is_(None))
        .values(summary_sent_at=now)
        .returning(Session.id)
    )
    return marked.first() is not None
