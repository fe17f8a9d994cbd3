"""HTTP endpoints for creating, listing, reading and changing sessions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import or_
from typing import Annotated, Any, Final, Literal, TypeVar

import sqlalchemy as sa
from fastapi import APIRouter, Query, Response
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
    ARRAYS,
    AdmittingRoute,
    CallerDep,
    Posted,
    ServiceDep,
    SessionID,
    StrictModel,
    build_blob_response,
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
"""The values by which a list can be filtered: 'open', 'over', or the name of a state."""


def _fetch_page(db: Transaction, caller: Caller, request: ListQuery) -> SessionPage:
    """Return a page of the caller's sessions, or of all sessions for an administrator.

    The most recently changed sessions come first. A session that changes while the
    pages are read moves to the first page. Every other session is on exactly one page.
    """
    caller.require_role(Role.COORDINATOR, Role.ADMINISTRATOR)
    key = Session.id if caller.role is Role.ADMINISTRATOR else Session.name
    query = sa.select(Session).options(orm.defer(Session.agreement))
    query = query.where(Session.deleted_at.is_(None), *_filter_conditions(request))
    if caller.role is not Role.ADMINISTRATOR:
        query = query.where(Session.owner_id == caller.credential_id)
    if (cursor := re.fullmatch(CURSOR, request.after)) is not None:
        changed_at = _EPOCH + int(cursor[1]) * _MICROSECOND
        at = sa.literal(changed_at, UTCDateTime())
        is_same = sa.and_(Session.changed_at == at, key > cursor[2])
        query = query.where(
            Session.changed_at <= at, sa.or_(Session.changed_at < at, is_same)
        )
    ordered = query.order_by(Session.changed_at.desc(), key).limit(request.limit)
    rows = db.scalars(ordered).all()
    awaited = sessions.awaited_slots(db, rows)
    of_owners = Credential.id.in_({session.owner_id for session in rows})
    owners = db.execute(sa.select(Credential.id, Credential.label).where(of_owners))
    labels = dict(owners.all())
    lines = [
        SessionLine(
            **_values_of(session, "title", "state", "round", "created_at", "reason"),
            id=sessions.public_id(caller, session),
            # Validating the whole terms would dominate the time to build the list.
            protocol=json.loads(session.terms)["protocol"]["name"],
            owner=labels[session.owner_id] or session.owner_id,
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


def _filter_conditions(request: ListQuery) -> Iterable[sa.ColumnElement[bool]]:
    if request.state:
        states = sorted(state.value for state in _GROUPS[request.state])
        yield Session.state.in_(states)
    if request.owner:
        owners = sa.select(Credential.id).where(Credential.label == request.owner)
        yield sa.or_(Session.owner_id == request.owner, Session.owner_id.in_(owners))
    if request.changed_since is not None:
        yield Session.changed_at >= request.changed_since
    if request.changed_before is not None:
        yield Session.changed_at < request.changed_before


def _protocol_models() -> Iterable[type[BaseModel]]:
    """Yield a model of the name and the parameters of each protocol in the catalogue."""
    for name, protocol in catalogue.catalogue().items():
        yield create_model(
            f"{name}-protocol",
            __base__=StrictModel,
            name=(Literal[name], ...),  # type: ignore[arg-type]  # a literal of a value
            params=(protocol.params, protocol.params.model_construct()),
        )


_AnyProtocol: Any = reduce(or_, _protocol_models())


class SessionWrite(SessionRequest):
    """The terms that a coordinator proposes for a session."""

    protocol: Annotated[_AnyProtocol, Field(discriminator="name")]
    seed: int = Field(default=0, ge=0, lt=2**53, description="Seed of random starts.")


_EARLIEST, _LATEST = (datetime(year, 1, 1, tzinfo=UTC) for year in (1970, 9000))
_Bound = Annotated[AwareDatetime, Field(ge=_EARLIEST, le=_LATEST)]


class ListQuery(BaseModel):
    """The filters for a list of sessions, and the position at which the page starts."""

    model_config = ConfigDict(extra="ignore")  # unknown query parameters are allowed

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
        description="Id or label of the key that opened the sessions.",
    )
    changed_since: _Bound | None = Field(
        default=None, description="Last changed then or later."
    )
    changed_before: _Bound | None = Field(
        default=None, description="Last changed earlier."
    )


class Extension(StrictModel):
    """A later deadline for the session."""

    deadline: AwareDatetime = Field(description="Later than the present one.")


class Cancellation(StrictModel):
    """The reason for cancelling a session."""

    reason: Text = Field(default="", description="For the parties to read.")


class PartyStop(StrictModel):
    """The reason why a party stops."""

    reason: StopReason | None = Field(
        description="What others learn, not which check refused. Null withdraws 'held'."
    )


class Choice(StrictModel):
    """The run to select from those of a session."""

    n_clusters: int = Field(ge=1, description="The number of clusters of the run.")


def _build_status(db: Transaction, caller: Caller, session: Session) -> SessionStatus:
    """Return the public state of a session, with the id by which the caller knows it."""
    awaited = sessions.awaited_slots(db, [session]).get(session.id, [])
    terms = read_terms(session.terms)
    runs = terms.evaluation
    of_slot = "state", "reason", "read_at", "joined_at", "n_rows", "stopped"
    return SessionStatus(
        **_values_of(session, "title", "state", "reason", "detail", "round", "attempt"),
        **_values_of(session, "stage", "stage_index", "n_stages"),
        **_values_of(session, "deadline", "created_at"),
        id=sessions.public_id(caller, session),
        protocol=terms.protocol.name,
        progress={
            **(session.progress or {}),
            **run_progress(session.stage, len(runs.n_clusters) if runs else 1),
        },
        slots=[
            SlotStatus(
                **_values_of(member, *of_slot),
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
        runs=_run_lines(session, terms),
        profiles=terms.release is not None and terms.release.profiles == "everybody",
    )


def _run_lines(session: Session, terms: Terms) -> list[RunLine]:
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


def _values_of(row: Session | Member, *names: str) -> dict[str, Any]:
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
    """Create a session under an id of the caller's choice (201). A repeat returns 200."""
    request, settings = body.read(), service.settings
    if not settings.offers_protocol(request.protocol.name):
        name = request.protocol.name
        raise InvalidParameters(f"The protocol {name!r} is not offered here.")
    if request.identities.analyst not in {None, service.institution.key}:
        raise InvalidParameters(
            "These terms name another analyst: GET /v1/identity returns this one's key."
        )

    def create_and_read(db: Transaction) -> tuple[SessionStatus, bool]:
        quota = settings.quota_sessions
        session, is_new = sessions.create_session(
            db, caller, session_id, request, quota
        )
        return _build_status(db, caller, session), is_new

    status, is_new = service.database.transact(create_and_read)
    response.status_code = 201 if is_new else 200
    return status


@router.get("")
def list_sessions(
    caller: CallerDep, service: ServiceDep, query: Annotated[ListQuery, Query()]
) -> SessionPage:
    """List the caller's sessions, the most recently changed first.

    A session that changes while the pages are read moves to the first page.
    """
    return service.database.query(_fetch_page, caller, query)


@router.get("/{session_id}")
def get_session(
    session_id: SessionID, caller: CallerDep, service: ServiceDep
) -> SessionStatus:
    """Return the state of a session, which parties it is waiting for, and until when."""
    with service.database.read() as db:
        session = sessions.visible_session(db, caller, session_id)
        status = _build_status(db, caller, session)
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
    session = service.database.query(sessions.visible_session, caller, session_id)
    if session.agreement is None:
        sessions.require_not_ended(session)
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
    """Return the audit log: a hash chain of who sent or received which digest, when.

    The oldest line comes first. Only coordinators and administrators may read the log.
    """
    # Parties are excluded: they could guess another party's short answer from its digest.
    caller.require_role(Role.COORDINATOR, Role.ADMINISTRATOR)
    with service.database.read() as db:
        session = sessions.visible_session(db, caller, session_id, allow_deleted=True)
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
    """Return the rounded cluster profiles; the list is empty unless they are released."""
    with service.database.read() as db:
        profiles = sessions.visible_session(db, caller, session_id).profiles
    return Profiles.model_validate({"profiles": profiles or []})


@router.put("/{session_id}/choice")
def put_choice(
    session_id: SessionID,
    body: Posted[Choice],
    caller: CallerDep,
    service: ServiceDep,
) -> SessionStatus:
    """Select the clustering run whose labels the parties get. A repeat changes nothing."""
    n_clusters = body.read().n_clusters
    status = _apply_change(service, caller, session_id, sessions.choose_run, n_clusters)
    service.notifier.notify_driver()
    return status


@router.put("/{session_id}/deadline")
def put_deadline(
    session_id: SessionID,
    body: Posted[Extension],
    caller: CallerDep,
    service: ServiceDep,
) -> SessionStatus:
    """Set a later deadline for the parties to answer. A repeat changes nothing."""
    deadline = body.read().deadline
    return _apply_change(
        service, caller, session_id, sessions.extend_deadline, deadline
    )


@router.post("/{session_id}/cancel")
def cancel_session(
    session_id: SessionID,
    caller: CallerDep,
    service: ServiceDep,
    body: Posted[Cancellation] | None = None,
) -> SessionStatus:
    """Cancel a session. Parties learn this and the reason with their next request."""
    reason = body.read().reason if body else ""
    status = _apply_change(service, caller, session_id, sessions.cancel_session, reason)
    service.notifier.notify_driver()
    return status


@router.delete("/{session_id}", status_code=204)
def delete_session(
    session_id: SessionID, caller: CallerDep, service: ServiceDep
) -> None:
    """Delete a session except its id and audit log. An open one is cancelled first."""
    retention.delete_session(service, caller, session_id)


@router.post("/{session_id}/stopped", status_code=204)
def post_stopped(
    session_id: SessionID,
    body: Posted[PartyStop],
    caller: CallerDep,
    service: ServiceDep,
) -> None:
    """Report that the caller's party has stopped. A repeat changes nothing.

    A party that is held may continue later. For any other reason the party has stopped
    for good: it sends nothing more, and the session ends unless the remaining parties
    form a quorum.
    """
    reason = body.read().reason
    service.database.transact(sessions.stop_party, caller, session_id, reason)
    service.notifier.notify_driver()


def _apply_change(
    service: Service,
    caller: Caller,
    session_id: str,
    change: Callable[[Transaction, Caller, str, T], Session],
    value: T,
) -> SessionStatus:
    """Apply a change to a session, and return its new state after the commit."""

    def change_and_read(db: Transaction) -> SessionStatus:
        return _build_status(db, caller, change(db, caller, session_id, value))

    return service.database.transact(change_and_read)


@results_router.get(
    "/result",
    response_class=Response,
    responses={200: ARRAYS},
)
def get_result(
    session_id: SessionID, caller: CallerDep, service: ServiceDep
) -> Response:
    """Return the caller's result: the labels for a party, the summary for a coordinator."""
    digest = service.database.transact(_hand_out_result, caller, session_id)
    return build_blob_response(service, digest)


def _hand_out_result(db: Transaction, caller: Caller, session_id: str) -> str:
    """Return the digest of the caller's result, and audit its first delivery."""
    session = sessions.visible_session(db, caller, session_id)
    if session.state != SessionState.COMPLETED:
        sessions.require_not_ended(session)
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
        audit.add_line(
            db, session.id, "result-sent", now, slot=caller.slot, digest=digest
        )
    return digest
