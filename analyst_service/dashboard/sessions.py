"""Pages of sessions: a list, one of them, and what may be done with it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from pydantic import ConfigDict, Field
from sqlalchemy.orm import Session as Transaction

from analyst_service.auth.service import Caller
from analyst_service.dashboard.routes import (
    ROOT,
    FormCheck,
    FormDep,
    PageRoute,
    VisitorDep,
    page,
    to,
)
from analyst_service.dashboard.views import report_of, session_page, sessions_page
from analyst_service.process_context import Service
from analyst_service.requests.deps import ServiceDep, SessionID
from analyst_service.sessions.schemas import status_of
from analyst_service.sessions.service import SessionService, known_as
from analyst_service.sessions.session_lists import (
    CURSOR,
    STATES,
    SessionListing,
    WantedSessions,
)
from analyst_service.storage.models import Session
from clustering_protocols import engine
from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.records import hash_chain
from clustering_protocols.records.record import Record
from clustering_protocols.terms.signed_logs import SignedLog, sign_audit
from clustering_protocols.wire.answers import SessionStatus
from coterie_pages.models.screens import SessionFilter
from coterie_pages.served_pages import HEADERS
from coterie_pages.times import read_moment

router = APIRouter(
    prefix=f"{ROOT}/sessions", include_in_schema=False, route_class=PageRoute
)

_SECONDS: Final = 5  # after which a session that continues is shown anew
_ALL: Final = 2**31 - 1
_MOST_DAYS: Final = 366


def _text(most: int) -> Any:
    """Return the field of a text of a form, in one line."""
    return Field(default="", max_length=most, pattern=r"^[^\x00-\x1f\x7f]*$")


class _ListQuery(SessionFilter):
    """The filter of a list, and where its page begins."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    state: str = Field(default="", pattern=rf"^({'|'.join(STATES)})?$")
    owner: str = _text(200)
    awaited: str = _text(63)
    since: str = _text(40)
    older: str = _text(40)
    after: str = Field(default="", pattern=rf"^({CURSOR})?$")
    limit: int = Field(default=100, ge=1, le=1000)


@router.get("")
def get_sessions(
    request: Request,
    visitor: VisitorDep,
    service: ServiceDep,
    query: Annotated[_ListQuery, Query()],
) -> Response:
    """Show the sessions of a key, with whom each waits for."""
    now = service.clock.now()
    wanted = WantedSessions(
        state=query.state,
        owner=query.owner.strip(),
        awaited=query.awaited.strip(),
        since=_moment("since", query.since, now),
        before=_moment("older", query.older, now),
    )
    with service.database.read() as transaction:
        found = SessionListing(transaction).page(
            visitor.caller, wanted, query.after, query.limit
        )
    filter_ = SessionFilter(**query.model_dump(include=set(SessionFilter.model_fields)))
    shown = sessions_page(visitor.caller, found, filter_, now, after=query.after)
    return page(request, shown, visitor)


@router.get("/{session_id}")
def get_session(
    request: Request, session_id: SessionID, visitor: VisitorDep, service: ServiceDep
) -> Response:
    """Show where a session stands, what happened when, and what came of it."""
    with service.database.read() as transaction:
        session, status, lines = _looked_at(
            transaction, service, visitor.caller, session_id
        )
        shown = session_page(
            session,
            status,
            lines,
            _summary(service, session),
            service.institution,
            service.clock.now(),
        )
    seconds = 0 if status.is_over else _SECONDS
    waits = "choose" in shown.standing.may
    return page(request, shown, visitor, seconds=seconds, waits=waits)


@router.get("/{session_id}/report.html")
def get_report(
    session_id: SessionID, visitor: VisitorDep, service: ServiceDep
) -> Response:
    """Return the report as a file that needs nothing else."""
    from coterie_pages.pages import page as file_of  # see routes.page

    with service.database.read() as transaction:
        session, status, lines = _looked_at(
            transaction, service, visitor.caller, session_id
        )
        entries = list(hash_chain.read(lines))
        report = report_of(
            session,
            status,
            entries,
            _summary(service, session),
            service.institution,
            most_lines=len(entries),
        )
    return _file(file_of(report), f"{session_id}-report.html", "text/html")


@router.get("/{session_id}/audit.json")
def get_audit(
    session_id: SessionID, visitor: VisitorDep, service: ServiceDep
) -> Response:
    """Return the whole audit, signed: `coterie verify` reads it."""
    with service.database.read() as transaction:
        sessions = SessionService(transaction, service.clock)
        name, found = sessions.audit(visitor.caller, session_id, 0, _ALL)
        lines = tuple(each.line for each in found)
    log = SignedLog(
        log="audit",
        session=name,
        lines=lines,
        key=service.institution.key,
        signature=sign_audit(service.institution, name, lines),
    )
    name = f"{session_id}-audit.json"
    return _file(log.model_dump_json(), name, "application/json")


@router.get("/{session_id}/status.json")
def get_status(
    session_id: SessionID, visitor: VisitorDep, service: ServiceDep
) -> Response:
    """Return what the page of a session says, as JSON."""
    with service.database.read() as transaction:
        _, status, _ = _looked_at(transaction, service, visitor.caller, session_id)
    name = f"{session_id}-status.json"
    return _file(status.model_dump_json(indent=2), name, "application/json")


@router.post("/{session_id}/cancel", dependencies=[FormCheck])
def post_cancel(
    session_id: SessionID, visitor: VisitorDep, service: ServiceDep
) -> Response:
    """End a session."""
    _change(service, lambda each: each.cancel(visitor.caller, session_id))
    return to(f"{ROOT}/sessions/{session_id}")


@router.post("/{session_id}/deadline")
def post_deadline(
    session_id: SessionID, visitor: VisitorDep, service: ServiceDep, fields: FormDep
) -> Response:
    """Wait some days longer for those that have not answered."""
    longer = timedelta(days=_number(fields, "days", _MOST_DAYS))

    def extend(sessions: SessionService) -> None:
        session = sessions.visible(visitor.caller, session_id, lock=True)
        until = session.deadline + longer
        sessions.extend(visitor.caller, session_id, until)

    _change(service, extend)
    return to(f"{ROOT}/sessions/{session_id}")


@router.post("/{session_id}/choice")
def post_choice(
    session_id: SessionID, visitor: VisitorDep, service: ServiceDep, fields: FormDep
) -> Response:
    """Choose the run whose labels parties get."""
    n_clusters = _number(fields, "n_clusters", _ALL)
    _change(service, lambda each: each.choose(visitor.caller, session_id, n_clusters))
    return to(f"{ROOT}/sessions/{session_id}")


def _looked_at(
    transaction: Transaction, service: Service, caller: Caller, session_id: str
) -> tuple[Session, SessionStatus, list[str]]:
    """Return a session, where it stands, and its audit."""
    sessions = SessionService(transaction, service.clock)
    session = sessions.visible(caller, session_id)
    status = status_of(
        session,
        known_as(caller, session),
        sessions.members(session),
        sessions.find_awaited(session),
    )
    _, found = sessions.audit(caller, session_id, 0, _ALL)
    return session, status, [each.line for each in found]


def _summary(service: Service, session: Session) -> Record | None:
    """Return what the coordinator is told of the result; None where there is none."""
    digest = session.summary_digest
    if digest is None or session.agreement is None:
        return None
    try:
        stored = service.blobs.file(digest).read_bytes()
    except KeyError:
        return None
    return engine.read_result(session.agreement, stored)


def _change(service: Service, change: Callable[[SessionService], Any]) -> None:
    def work(transaction: Transaction) -> None:
        change(SessionService(transaction, service.clock))

    service.database.transact(work)
    service.notifier.notify_driver()


def _moment(name: str, text: str, now: datetime) -> datetime | None:
    """Return the time that a field of the filter names; None where it is empty."""
    try:
        return read_moment(text, now) if text.strip() else None
    except ValueError as error:
        raise InvalidParameters(f"{error}.", field=name) from None


def _number(fields: FormDep, name: str, most: int) -> int:
    text = fields.get(name, "")
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:10]) <= most):
        raise InvalidParameters("give a whole number from 1 on.", field=name)
    return int(text[:10])


def _file(content: str, name: str, media_type: str) -> Response:
    """Return a file to keep; it is never shown among the pages of this address."""
    kept = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(
        content, media_type=f"{media_type}; charset=utf-8", headers={**HEADERS, **kept}
    )
