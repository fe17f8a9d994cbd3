"""Sessions over HTTP: their JSON, lists of them, and the routes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import or_
from typing import Annotated, Any, Final, Literal, TypeVar

import sqlalchemy as sa
from fastapi import APIRouter, Query, Request, Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, create_model
from sqlalchemy import orm

from analyst_service import audit, retention, sessions
from analyst_service.credentials import Caller, Role
from analyst_service.database import Transaction
from analyst_service.models import (
    AuditLine,
    Credential,
    Member,
    Result,
    Session,
    UTCDateTime,
)
from analyst_service.process_context import Service
from analyst_service.requests import (
    RESPONSE,
    AdmittingRoute,
    CallerDep,
    Form,
    Posted,
    ServiceDep,
    SessionID,
    send_blob,
)
from clustering_protocols import catalogue
from clustering_protocols.common.errors import InvalidParameters, NotFound, NotReady
from clustering_protocols.numerics.profiles import Profiles
from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.signed_logs import sign_audit
from clustering_protocols.terms.terms import SessionRequest, Terms, Text, read_terms
from clustering_protocols.wire.answers import (
    AuditPage,
    RunLine,
    SessionLine,
    SessionPage,
    SessionStatus,
    SlotStatus,
    run_progress,
)
from clustering_protocols.wire.states import OVER, SessionState, StopReason

T = TypeVar("T")
CURSOR: Final = r"([0-9]{1,17})~([a-z0-9._-]{1,63})"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

_GROUPS: Final[Mapping[str, Collection[SessionState]]] = {
    "open": set(SessionState) - OVER,
    "over": OVER,
    **{state.value: {state} for state in SessionState},
}
STATES: Final = tuple(_GROUPS)
"""The values of a list's filter by state: 'open', 'over', or one state."""


def _list_page(db: Transaction, caller: Caller, request: ListQuery) -> SessionPage:
    """Return the caller's sessions, last changed first; all of them to an administrator.

    A session that changes while pages are read moves to the first page; every other one
    is on exactly one page.
    """
    caller.require(Role.COORDINATOR, Role.ADMINISTRATOR)
    key = Session.id if caller.role is Role.ADMINISTRATOR else Session.name
    query = sa.select(Session).options(orm.defer(Session.agreement))
    query = query.where(Session.deleted_at.is_(None), *_conditions(request))
    if caller.role is not Role.ADMINISTRATOR:
        query = query.where(Session.owner_id == caller.principal_id)
    if (cursor := re.fullmatch(CURSOR, request.after)) is not None:
        changed_at = _EPOCH + int(cursor[1]) * _MICROSECOND
        at = sa.literal(changed_at, UTCDateTime())
        is_same = sa.and_(Session.changed_at == at, key > cursor[2])
        query = query.where(
            Session.changed_at <= at, sa.or_(Session.changed_at < at, is_same)
        )
    ordered = query.order_by(Session.changed_at.desc(), key).limit(request.limit)
    rows = db.scalars(ordered).all()
    awaited = sessions.find_awaited(db, rows)
    # the label of each principal's first key
    labels = {
        str(principal_id): label
        for principal_id, label in db.execute(
            sa.select(Credential.principal_id, Credential.label)
            .where(Credential.principal_id.in_({session.owner_id for session in rows}))
            .order_by(Credential.created_at.desc())
        )
    }
    lines = [
        SessionLine(
            **_columns(session, "title", "state", "round", "created_at", "reason"),
            id=sessions.public_id(caller, session),
            # parsing the whole terms would take longer than the rest of the line
            protocol=json.loads(session.terms)["protocol"]["name"],
            owner=labels.get(session.owner_id) or session.owner_id,
            awaited=awaited.get(session.id, []),
            waiting_since=session.changed_at,
            deadline=session.deadline,
        )
        for session in rows
    ]
    if len(lines) < request.limit:
        return SessionPage(sessions=lines, next=None)
    last = (rows[-1].changed_at - _EPOCH) // _MICROSECOND
    return SessionPage(sessions=lines, next=f"{last}~{lines[-1].id}")


def _conditions(request: ListQuery) -> Iterable[sa.ColumnElement[bool]]:
    if request.state:
        states = sorted(state.value for state in _GROUPS[request.state])
        yield Session.state.in_(states)
    if request.owner:
        owners = sa.select(Credential.principal_id).where(
            Credential.label == request.owner, Credential.principal_id.is_not(None)
        )
        yield sa.or_(Session.owner_id == request.owner, Session.owner_id.in_(owners))
    if request.changed_since is not None:
        yield Session.changed_at >= request.changed_since
    if request.changed_before is not None:
        yield Session.changed_at < request.changed_before


def _protocol_models() -> Iterable[type[BaseModel]]:
    """Yield one model per protocol of the catalogue: its name and its parameters."""
    for name, protocol in catalogue.catalogue().items():
        yield create_model(
            f"{name}-protocol",
            __base__=Form,
            name=(Literal[name], ...),  # type: ignore[arg-type]  # a literal of a value
            params=(protocol.params, protocol.params.model_construct()),
        )


_AnyProtocol: Any = reduce(or_, _protocol_models())


class SessionWrite(SessionRequest):
    """The terms that a coordinator proposes."""

    protocol: Annotated[_AnyProtocol, Field(discriminator="name")]
    seed: int = Field(default=0, ge=0, lt=2**53, description="Seed of random starts.")


_EARLIEST, _LATEST = (datetime(year, 1, 1, tzinfo=UTC) for year in (1970, 9000))
_Bound = Annotated[AwareDatetime, Field(ge=_EARLIEST, le=_LATEST)]


class ListQuery(BaseModel):
    """The filters of a list of sessions, and where its page begins."""

    model_config = ConfigDict(extra="ignore")  # as for every query string

    after: str = Field(
        default="",
        pattern=rf"^({CURSOR})?$",
        description="`next` of the previous page; empty for the first page.",
    )
    limit: int = Field(default=50, ge=1, le=100)
    state: str = Field(
        default="",
        pattern=rf"^({'|'.join(STATES)})?$",
        description="`open`, `over`, or one state.",
    )
    owner: str = Field(
        default="",
        max_length=200,
        pattern=r"^[^\x00-\x1f\x7f]*$",
        description="Id of a principal, or label of its key.",
    )
    changed_since: _Bound | None = Field(
        default=None, description="Last changed then or later."
    )
    changed_before: _Bound | None = Field(
        default=None, description="Last changed earlier."
    )


class Extension(Form):
    """A later deadline."""

    deadline: AwareDatetime = Field(description="Later than the present one.")


class Cancellation(Form):
    """The reason for cancelling a session."""

    reason: Text = Field(default="", description="For the parties to read.")


class PartyStop(Form):
    """The reason for a party's stop."""

    reason: StopReason | None = Field(
        description="What others learn, not which check refused. Null withdraws 'held'."
    )


class Choice(Form):
    """The run to select."""

    n_clusters: int = Field(ge=1, description="The number of clusters of the run.")


def _read_status(db: Transaction, caller: Caller, session: Session) -> SessionStatus:
    """Return the public state of a session, under the id that the caller uses."""
    awaited = sessions.find_awaited(db, [session]).get(session.id, [])
    terms = read_terms(session.terms)
    runs = terms.evaluation
    of_slot = "state", "reason", "read_at", "joined_at", "n_rows", "stopped"
    return SessionStatus(
        **_columns(session, "title", "state", "reason", "detail", "round", "attempt"),
        **_columns(session, "stage", "stage_index", "n_stages"),
        **_columns(session, "deadline", "created_at"),
        id=sessions.public_id(caller, session),
        protocol=terms.protocol.name,
        progress={
            **(session.progress or {}),
            **run_progress(session.stage, len(runs.n_clusters) if runs else 1),
        },
        slots=[
            SlotStatus(
                **_columns(member, *of_slot),
                name=member.slot,
                row=member.row_group,
                column=member.column_group,
                awaited=member.slot in awaited,
            )
            for member in sessions.members_of(db, session.id)
        ],
        waiting_since=session.changed_at,
        risks=list(terms.risks),
        terms_digest=digest(session.terms),
        runs=_runs(session, terms),
        profiles=terms.release is not None and terms.release.profiles == "everybody",
    )


def _runs(session: Session, terms: Terms) -> list[RunLine]:
    if not session.figures:
        return []
    runs = (
        terms.evaluation.n_clusters
        if terms.evaluation
        else [session.figures[0]["n_clusters"]]
    )
    return [
        RunLine(
            n_clusters=k,
            figures={name: value for name, value in figures.items() if name != "sizes"},
            sizes=figures.get("sizes", ()),
            chosen=number == session.chosen,
        )
        for number, (k, figures) in enumerate(zip(runs, session.figures, strict=True))
    ]


def _columns(row: Session | Member, *names: str) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}


router = APIRouter(prefix="/v1/sessions", tags=["sessions"], route_class=AdmittingRoute)
results_router = APIRouter(
    prefix="/v1/sessions/{session_id}", tags=["results"], route_class=AdmittingRoute
)


@router.put("/{session_id}", responses={201: {"model": SessionStatus}})
def put_session(
    session_id: SessionID,
    body: Posted[SessionWrite],
    caller: CallerDep,
    service: ServiceDep,
    response: Response,
) -> SessionStatus:
    """Open a session under an id of the caller's choice: 201, a repeat 200."""
    request, settings = body.read(), service.settings
    if not settings.offers(request.protocol.name):
        name = request.protocol.name
        raise InvalidParameters(f"The protocol {name!r} is not offered here.")
    if request.identities.analyst not in {None, service.institution.key}:
        raise InvalidParameters(
            "These terms name another analyst: GET /v1/identity returns this one's key."
        )

    def put(db: Transaction) -> tuple[SessionStatus, bool]:
        quota = settings.quota_sessions
        session, is_new = sessions.create(db, caller, session_id, request, quota)
        return _read_status(db, caller, session), is_new

    status, is_new = service.database.transact(put)
    response.status_code = 201 if is_new else 200
    return status


@router.get("")
def list_sessions(
    caller: CallerDep, service: ServiceDep, query: Annotated[ListQuery, Query()]
) -> SessionPage:
    """List the caller's sessions, last changed first.

    A session that changes while pages are read moves to the first page.
    """
    return service.database.query(_list_page, caller, query)


@router.get("/{session_id}")
def get_session(
    session_id: SessionID, caller: CallerDep, service: ServiceDep
) -> SessionStatus:
    """Return the state of a session, who is awaited, since when and until when."""
    with service.database.read() as db:
        status = _read_status(db, caller, sessions.visible(db, caller, session_id))
    return status.model_copy(update={"short_of_room": not service.has_room()})


@router.get(
    "/{session_id}/agreement",
    response_class=Response,
    responses={200: {"content": {"application/json": {}}}},
)
def get_agreement(
    session_id: SessionID, caller: CallerDep, service: ServiceDep
) -> Response:
    """Return the exact bytes of the agreement: the terms, and the roster with its keys."""
    session = service.database.query(sessions.visible, caller, session_id)
    if session.agreement is None:
        sessions.require_alive(session)
        raise NotReady("The agreement exists once all parties have joined.")
    return Response(session.agreement, media_type="application/json")


@router.get("/{session_id}/audit")
def get_audit(
    session_id: SessionID,
    caller: CallerDep,
    service: ServiceDep,
    after: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
) -> AuditPage:
    """Return who sent or received which digest when: a chain of lines, oldest first."""
    # not for parties, which could guess a short answer from its digest
    caller.require(Role.COORDINATOR, Role.ADMINISTRATOR)
    with service.database.read() as db:
        session = sessions.visible(db, caller, session_id, deleted=True)
        rows = db.scalars(
            sa.select(AuditLine)
            .where(AuditLine.session_id == session.id, AuditLine.number > after)
            .order_by(AuditLine.number)
            .limit(limit)
        ).all()
    lines = [row.line for row in rows]
    return AuditPage(
        lines=lines,
        next=rows[-1].number if len(rows) == limit else None,
        signature=(
            sign_audit(service.institution, session.name, lines) if lines else ""
        ),
    )


@router.get("/{session_id}/profiles")
def get_profiles(
    session_id: SessionID, caller: CallerDep, service: ServiceDep
) -> Profiles:
    """Return the clusters' profiles, rounded, once they are released to everybody."""
    with service.database.read() as db:
        profiles = sessions.visible(db, caller, session_id).profiles
    return Profiles.model_validate({"profiles": profiles or []})


@router.put("/{session_id}/choice")
def put_choice(
    session_id: SessionID,
    body: Posted[Choice],
    caller: CallerDep,
    service: ServiceDep,
) -> SessionStatus:
    """Select the run whose labels parties get; a repeat changes nothing."""
    n_clusters = body.read().n_clusters
    status = _change(service, caller, session_id, sessions.choose, n_clusters)
    service.notifier.notify_driver()
    return status


@router.put("/{session_id}/deadline")
def put_deadline(
    session_id: SessionID,
    body: Posted[Extension],
    caller: CallerDep,
    service: ServiceDep,
) -> SessionStatus:
    """Wait longer for parties that have not answered; a repeat changes nothing."""
    return _change(service, caller, session_id, sessions.extend, body.read().deadline)


@router.post("/{session_id}/cancel")
def cancel_session(
    session_id: SessionID,
    caller: CallerDep,
    service: ServiceDep,
    body: Posted[Cancellation] | None = None,
) -> SessionStatus:
    """End a session; parties learn that and the reason at their next request."""
    reason = body.read().reason if body else ""
    status = _change(service, caller, session_id, sessions.cancel, reason)
    service.notifier.notify_driver()
    return status


@router.delete("/{session_id}", status_code=204)
def delete_session(
    session_id: SessionID, caller: CallerDep, service: ServiceDep
) -> None:
    """Remove a session except its audit; its id stays taken."""
    retention.delete_session(service, caller, session_id)


@router.post("/{session_id}/stopped", status_code=204)
def post_stopped(
    session_id: SessionID,
    body: Posted[PartyStop],
    caller: CallerDep,
    service: ServiceDep,
) -> None:
    """Announce that the caller's party stopped; a repeat changes nothing.

    A held party may continue. A party with another reason sends nothing more, and the
    session ends unless the remaining parties are a quorum.
    """
    reason = body.read().reason
    service.database.transact(sessions.stop_party, caller, session_id, reason)
    service.notifier.notify_driver()


def _change(
    service: Service,
    caller: Caller,
    session_id: str,
    change: Callable[[Transaction, Caller, str, T], Session],
    value: T,
) -> SessionStatus:
    """Change a session and return its new state after the commit."""

    def work(db: Transaction) -> SessionStatus:
        return _read_status(db, caller, change(db, caller, session_id, value))

    return service.database.transact(work)


@results_router.get(
    "/result",
    response_class=Response,
    responses={200: RESPONSE},
)
def get_result(
    session_id: SessionID, request: Request, caller: CallerDep, service: ServiceDep
) -> Response:
    """Return a party's own result; for the coordinator, the summary."""
    digest = service.database.transact(_hand_out, caller, session_id)
    return send_blob(service, digest, request.headers)


def _hand_out(db: Transaction, caller: Caller, session_id: str) -> str:
    """Return the digest of the caller's result; audit its first delivery."""
    session = sessions.visible(db, caller, session_id)
    if session.state != SessionState.COMPLETED:
        sessions.require_alive(session)
        raise NotReady("The session is not complete.")
    is_party, digest = caller.role is Role.PARTY, session.summary_digest
    if is_party:
        result = db.get(Result, (session.id, caller.slot or ""))
        digest = None if result is None else result.digest
    if digest is None:
        raise NotFound("This session has no result for this credential.")
    now = db.now()
    mark = (
        sa.update(Result)
        .where(Result.session_id == session.id, Result.slot == caller.slot)
        .where(Result.sent_at.is_(None))
        .values(sent_at=now)
        .returning(Result.slot)
        if is_party
        else sa.update(Session)
        .where(Session.id == session.id, Session.summary_sent_at.is_(None))
        .values(summary_sent_at=now)
        .returning(Session.id)
    )
    if db.execute(mark).first() is not None:
        audit.append(
            db, session.id, "result-sent", now, slot=caller.slot, digest=digest
        )
    return digest
