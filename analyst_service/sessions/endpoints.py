"""Sessions over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

from fastapi import APIRouter, Query, Response
from sqlalchemy.orm import Session as Transaction

from analyst_service.auth.service import Caller
from analyst_service.requests.deps import (
    AdmittingRoute,
    CallerDep,
    ServiceDep,
    SessionID,
)
from analyst_service.requests.strict_json import Posted
from analyst_service.sessions.party_stops import PartyStops
from analyst_service.sessions.schemas import (
    Cancellation,
    Choice,
    Extension,
    ListQuery,
    PartyStop,
    SessionWrite,
    audit_page,
    list_page,
    status_of,
)
from analyst_service.sessions.service import SessionService, known_as
from analyst_service.sessions.session_lists import SessionListing
from analyst_service.storage.models import Session
from clustering_protocols.numerics.profiles import Profiles
from clustering_protocols.wire.answers import AuditPage, SessionPage, SessionStatus

router = APIRouter(prefix="/v1/sessions", tags=["sessions"], route_class=AdmittingRoute)


@contextmanager
def _open_sessions(service: ServiceDep) -> Iterator[SessionService]:
    with service.database.read() as transaction:
        yield SessionService(transaction, service.clock)


@router.put("/{session_id}", responses={201: {"model": SessionStatus}})
def put_session(
    session_id: SessionID,
    body: Posted[SessionWrite],
    caller: CallerDep,
    service: ServiceDep,
    response: Response,
) -> SessionStatus:
    """Open a session under an id of the caller's choice: 201, a repeat 200."""
    request = body.read()
    service.require_offered(request.protocol.name)
    service.require_own(request.identities)

    def put(transaction: Transaction) -> tuple[SessionStatus, bool]:
        sessions = SessionService(transaction, service.clock)
        quota = service.settings.quota_sessions
        session, is_new = sessions.create(caller, session_id, request, quota)
        if is_new:
            service.require_retention(request.retention)
        return _read(sessions, caller, session), is_new

    opened, is_new = service.database.transact(put)
    response.status_code = 201 if is_new else 200
    return opened


@router.get("")
def list_sessions(
    caller: CallerDep, service: ServiceDep, query: Annotated[ListQuery, Query()]
) -> SessionPage:
    """List the caller's sessions, those that moved on last first.

    A session that moves on while pages are read moves to the first page.
    """
    with service.database.read() as transaction:
        page = SessionListing(transaction).page(
            caller, query.build_filter(), query.after, query.limit
        )
        return list_page(page)


@router.get("/{session_id}")
def get_session(
    session_id: SessionID, caller: CallerDep, service: ServiceDep
) -> SessionStatus:
    """Say where a session stands, who is awaited, since when and until when."""
    with _open_sessions(service) as sessions:
        status = _read(sessions, caller, sessions.visible(caller, session_id))
    return status.model_copy(update={"short_of_room": not service.has_room()})


@router.get(
    "/{session_id}/agreement",
    response_class=Response,
    responses={200: {"content": {"application/json": {}}}},
)
def get_agreement(
    session_id: SessionID, caller: CallerDep, service: ServiceDep
) -> Response:
    """Return the exact bytes of the agreement: terms, and the roster with its keys."""
    with _open_sessions(service) as sessions:
        agreement = sessions.agreement(caller, session_id)
    return Response(agreement, media_type="application/json")


@router.get("/{session_id}/audit")
def get_audit(
    session_id: SessionID,
    caller: CallerDep,
    service: ServiceDep,
    after: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
) -> AuditPage:
    """Say who sent or received which digest when: a chain of lines, oldest first."""
    with _open_sessions(service) as sessions:
        name, lines = sessions.audit(caller, session_id, after, limit)
    return audit_page(name, lines, limit, service.institution)


@router.get("/{session_id}/profiles")
def get_profiles(
    session_id: SessionID, caller: CallerDep, service: ServiceDep
) -> Profiles:
    """Return what the clusters are like, rounded, once everybody was told."""
    with _open_sessions(service) as sessions:
        found = sessions.visible(caller, session_id).profiles
    return Profiles.model_validate({"profiles": found or []})


@router.put("/{session_id}/choice")
def put_choice(
    session_id: SessionID,
    body: Posted[Choice],
    caller: CallerDep,
    service: ServiceDep,
) -> SessionStatus:
    """Choose the run whose labels parties get; a repeat changes nothing."""
    n_clusters = body.read().n_clusters

    chosen = _change_session(
        service, caller, lambda each: each.choose(caller, session_id, n_clusters)
    )
    service.notifier.notify_driver()
    return chosen


@router.put("/{session_id}/deadline")
def put_deadline(
    session_id: SessionID,
    body: Posted[Extension],
    caller: CallerDep,
    service: ServiceDep,
) -> SessionStatus:
    """Wait longer for those that have not answered; a repeat changes nothing."""
    deadline = body.read().deadline

    return _change_session(
        service, caller, lambda each: each.extend(caller, session_id, deadline)
    )


@router.post("/{session_id}/cancel")
def cancel_session(
    session_id: SessionID,
    caller: CallerDep,
    service: ServiceDep,
    body: Posted[Cancellation] | None = None,
) -> SessionStatus:
    """End a session; parties learn it, and why, at their next request."""
    reason = body.read().reason if body else ""
    cancelled = _change_session(
        service, caller, lambda each: each.cancel(caller, session_id, reason)
    )
    service.notifier.notify_driver()
    return cancelled


@router.post("/{session_id}/stopped", status_code=204)
def post_stopped(
    session_id: SessionID,
    body: Posted[PartyStop],
    caller: CallerDep,
    service: ServiceDep,
) -> None:
    """Say that the caller's party stopped for good; a repeat changes nothing.

    It sends nothing more. The session ends, unless a quorum of others is enough.
    """
    reason = body.read().reason

    def stop(transaction: Transaction) -> None:
        parties = PartyStops(transaction, service.clock)
        parties.stop(caller, session_id, reason)

    service.database.transact(stop)
    service.notifier.notify_driver()


def _change_session(
    service: ServiceDep, caller: Caller, change: Callable[[SessionService], Session]
) -> SessionStatus:
    """Return where a session stands once it is changed and the change committed."""

    def work(transaction: Transaction) -> SessionStatus:
        sessions = SessionService(transaction, service.clock)
        return _read(sessions, caller, change(sessions))

    return service.database.transact(work)


def _read(sessions: SessionService, caller: Caller, session: Session) -> SessionStatus:
    members, awaited = sessions.members(session), sessions.find_awaited(session)
    return status_of(session, known_as(caller, session), members, awaited)
