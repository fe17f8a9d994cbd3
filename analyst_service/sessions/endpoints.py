"""Sessions over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from analyst_service.deps import CallerDep, Reading, ServiceDep, SessionID, Writing
from analyst_service.sessions.schemas import (
    SessionLine,
    SessionPage,
    SessionRead,
    SessionWrite,
)
from analyst_service.sessions.service import SessionService

router = APIRouter(prefix="/v1/sessions", tags=["sessions"])


def _reading(unit: Reading, service: ServiceDep) -> SessionService:
    return SessionService(unit, service.clock)


def _writing(unit: Writing, service: ServiceDep) -> SessionService:
    return SessionService(unit, service.clock)


ReadingSessions = Annotated[SessionService, Depends(_reading)]
WritingSessions = Annotated[SessionService, Depends(_writing)]


@router.put("/{session_id}", responses={201: {"model": SessionRead}})
def put_session(
    session_id: SessionID,
    body: SessionWrite,
    caller: CallerDep,
    sessions: WritingSessions,
    response: Response,
) -> SessionRead:
    """Open a session under an id of the caller's choice: 201, a repeat 200."""
    session, is_new = sessions.create(caller, session_id, body.proposal())
    response.status_code = 201 if is_new else 200
    return SessionRead.of(session, sessions.members(session), sessions.awaited(session))


@router.get("")
def list_sessions(
    caller: CallerDep,
    sessions: ReadingSessions,
    after: Annotated[str, Query(pattern=r"^[a-z0-9._-]{0,63}$")] = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
) -> SessionPage:
    """List the caller's sessions by id."""
    found = sessions.page(caller, after, limit)
    following = found[-1].id if len(found) == limit else None
    return SessionPage(sessions=[SessionLine.of(s) for s in found], next=following)


@router.get("/{session_id}")
def get_session(
    session_id: SessionID, caller: CallerDep, sessions: ReadingSessions
) -> SessionRead:
    """Say where a session stands, who is awaited, since when and until when."""
    session = sessions.visible(caller, session_id)
    return SessionRead.of(session, sessions.members(session), sessions.awaited(session))


@router.get(
    "/{session_id}/agreement",
    response_class=Response,
    responses={200: {"content": {"application/json": {}}}},
)
def get_agreement(
    session_id: SessionID, caller: CallerDep, sessions: ReadingSessions
) -> Response:
    """Return the exact bytes of the agreement: terms, and the roster with its keys."""
    return Response(
        sessions.agreement(caller, session_id), media_type="application/json"
    )


@router.post("/{session_id}/cancel")
def cancel_session(
    session_id: SessionID, caller: CallerDep, sessions: WritingSessions
) -> SessionRead:
    """End a session; parties learn it at their next request."""
    session = sessions.cancel(caller, session_id)
    return SessionRead.of(session, sessions.members(session), sessions.awaited(session))
