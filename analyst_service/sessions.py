"""Create, find and change sessions, and check who may see them and what they may store."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final

import sqlalchemy as sa

from analyst_service import audit
from analyst_service.credentials import Caller, Role
from analyst_service.database import Transaction
from analyst_service.models import (
    Contribution,
    Credential,
    Member,
    Session,
    Task,
    table,
)
from analyst_service.outbox import SessionChange, write_notices
from clustering_protocols.catalogue import protocol
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import (
    CoterieError,
    InvalidParameters,
    NotFound,
    NotReady,
    PartyStopped,
    QuotaReached,
    RoundClosed,
    SessionExists,
    SessionOver,
)
from clustering_protocols.session_terms import check_terms, draw_up_terms
from clustering_protocols.terms.terms import SessionRequest, read_terms
from clustering_protocols.wire.states import (
    OVER,
    Event,
    SessionState,
    SlotState,
    StopReason,
    describe_stop,
    next_state,
)

OVER_STATES: Final = sorted(state.value for state in OVER)
_IS_OPEN: Final = Session.state.not_in(OVER_STATES)
_COORDINATORS: Final = (Role.COORDINATOR, Role.ADMINISTRATOR)
_LONGEST_WAIT = timedelta(days=366)
_NO_REASON = "Stopped on request."
_STEM = 54  # characters of the name that are kept before a random suffix

_SESSIONS, _TASKS = table(Session), table(Task)
# Built once, because every request executes these statements.
_BY_IDS = (
    sa.select(Session)
    .where(Session.id.in_(sa.bindparam("session_ids", expanding=True)))
    .order_by(Session.id)
    .execution_options(populate_existing=True)
)
_BY_IDS_LOCKED = _BY_IDS.with_for_update()


def apply_event(
    db: Transaction,
    session: Session,
    event: Event,
    now: datetime,
    token: str | None = None,
    **changes: Any,
) -> bool:
    """Apply an event to a session; return False if the session has changed meanwhile.

    The UPDATE compares the state, round and attempt, and the token of the caller's
    lease if one is passed, so only one of several concurrent changes succeeds. A
    successful change ends any lease, is recorded in the audit log, and is announced to
    the session's mail addresses. ``changes`` are further columns to set.
    """
    values = {
        **{f"from_{name}": getattr(session, name) for name in _POSITION},
        "token": token,
        "lease_token": None,
        "lease_until": None,
        "step_attempts": 0,
        "state": next_state(SessionState(session.state), event).value,
        "changed_at": now,
        **changes,
    }
    row = db.execute(_MOVE if token is None else _MOVE_BY_LEASE, values).first()
    if row is None:
        return False
    change = SessionChange(*row)
    audit.record_locked_sessions(db, [session.id])
    digest = changes.get("state_digest") or changes.get("summary_digest")
    if agreement := changes.get("agreement"):
        digest = sha256(agreement).hexdigest()
    audit.add_line(
        db,
        session.id,
        event.value,
        now,
        round=change.round,
        attempt=change.attempt,
        digest=digest,
        reason=changes.get("reason"),
        stage=changes.get("stage"),
    )
    write_notices(db, change, now)
    return True


_POSITION = ("id", "state", "round", "attempt")
# SQLAlchemy also sets the columns that the parameters of an execution name.
_MOVE = (
    sa.update(_SESSIONS)
    .where(*(_SESSIONS.c[name] == sa.bindparam(f"from_{name}") for name in _POSITION))
    .returning(*(_SESSIONS.c[name] for name in SessionChange._fields))
)
_MOVE_BY_LEASE = _MOVE.where(_SESSIONS.c.lease_token == sa.bindparam("token"))


def find_session(
    db: Transaction, session_id: str, *, lock: bool = False
) -> Session | None:
    """Return the current row of a session, or None if it does not exist."""
    return find_sessions(db, [session_id], lock=lock).get(session_id)


def find_sessions(
    db: Transaction, session_ids: Collection[str], *, lock: bool = False
) -> dict[str, Session]:
    """Return the current rows of those sessions that exist, keyed by id.

    lock: whether to lock the rows, in the order of their ids.
    """
    query = _BY_IDS_LOCKED if lock else _BY_IDS
    rows = db.scalars(query, {"session_ids": list(session_ids)})
    sessions = {session.id: session for session in rows}
    if lock:
        audit.record_locked_sessions(db, sessions)
    return sessions


def _find_by_name(
    db: Transaction, owner_id: str, name: str, *, lock: bool
) -> Session | None:
    query = sa.select(Session.id).where(
        Session.owner_id == owner_id, Session.name == name
    )
    session_id = db.scalar(query)
    return None if session_id is None else find_session(db, session_id, lock=lock)


def members_of(db: Transaction, session_id: str) -> list[Member]:
    """Return the members of a session, ordered by row group and column group."""
    query = sa.select(Member).where(Member.session_id == session_id)
    return list(db.scalars(query.order_by(Member.row_group, Member.column_group)))


def _slots_in_open_attempt(
    db: Transaction, kind: type[Task | Contribution], session: Session
) -> set[str]:
    """Return the slots that have a task or contribution in the session's open attempt."""
    query = sa.select(kind.slot).where(
        kind.session_id == session.id,
        kind.round == session.round,
        kind.attempt == session.attempt,
    )
    return set(db.scalars(query))


def awaited_slots(db: Transaction, sessions: Iterable[Session]) -> dict[str, list[str]]:
    """Return the slots that sessions are waiting for, keyed by the id of the session."""
    ids: dict[str, list[str]] = {}
    for session in sessions:
        ids.setdefault(session.state, []).append(session.id)
    slots: dict[str, list[str]] = {}
    for state, query in _AWAITED.items():
        if state in ids:
            for session_id, slot in db.execute(query, {"session_ids": ids[state]}):
                slots.setdefault(session_id, []).append(slot)
    return slots


_NOT_JOINED = Member.state != SlotState.JOINED.value
_HAS_OPEN_ATTEMPT = sa.and_(
    Task.session_id == Session.id,
    Task.round == Session.round,
    Task.attempt == Session.attempt,
)
_IS_ANSWERED = sa.exists().where(
    Contribution.session_id == Task.session_id,
    Contribution.round == Task.round,
    Contribution.attempt == Task.attempt,
    Contribution.slot == Task.slot,
)
_OF_SESSIONS: sa.BindParameter[Any] = sa.bindparam("session_ids", expanding=True)
_AWAITED = {
    SessionState.RECRUITING.value: sa.select(Member.session_id, Member.slot)
    .where(Member.session_id.in_(_OF_SESSIONS), _NOT_JOINED)
    .order_by(Member.row_group, Member.column_group),
    SessionState.COLLECTING.value: sa.select(Task.session_id, Task.slot)
    .join(Session, _HAS_OPEN_ATTEMPT)
    .where(Session.id.in_(_OF_SESSIONS), ~_IS_ANSWERED)
    .order_by(Task.slot),
}


def visible_session(
    db: Transaction,
    caller: Caller,
    session_id: str,
    *,
    lock: bool = False,
    allow_deleted: bool = False,
    loaded: Mapping[str, Session] | None = None,
) -> Session:
    """Return a session that the caller may see; every endpoint applies the same rule.

    Raises NotFound if the session does not exist or belongs to somebody else. Raises
    SessionOver if the session was deleted, unless ``allow_deleted`` is true.

    lock: whether to lock the session's row.
    loaded: the parties' sessions by id, if :func:`find_sessions` has already read them.
    """
    if caller.role is Role.ADMINISTRATOR:
        session = find_session(db, session_id, lock=lock)
    elif caller.role is Role.COORDINATOR:
        session = _find_by_name(db, caller.credential_id, session_id, lock=lock)
    else:
        own_id = caller.session_id or ""
        found = find_sessions(db, [own_id], lock=lock) if loaded is None else loaded
        session = found.get(own_id)
        if session is not None and session.name != session_id:
            session = None
    if session is None:
        raise NotFound("No session of this id is visible to this credential.")
    if session.deleted_at is not None and not allow_deleted:
        raise SessionOver("It was deleted.", session.state, session.reason)
    return session


def public_id(caller: Caller, session: Session) -> str:
    """Return the id by which this caller refers to the session."""
    return session.id if caller.role is Role.ADMINISTRATOR else session.name


def require_not_ended(session: Session) -> None:
    """Raise :class:`SessionOver` with the session's state and reason if it has ended."""
    state = SessionState(session.state)
    if state in OVER:
        detail = session.detail or f"Session {session.name!r} is {state}."
        raise SessionOver(detail, state.value, session.reason)


def count_sessions_by_state(db: Transaction) -> dict[str, float]:
    """Return the number of sessions in each state."""
    query = sa.select(Session.state, sa.func.count()).group_by(Session.state)
    numbers = dict(db.execute(query).all())
    return {state.value: numbers.get(state.value, 0) for state in SessionState}


def longest_wait_by_state(db: Transaction) -> dict[str, float]:
    """Return the longest time (seconds) that any session has been in each open state.

    The time is 0 for a state that no session is in.
    """
    query = sa.select(Session.state, sa.func.min(Session.changed_at))
    since = dict(db.execute(query.group_by(Session.state)).all())
    now = db.now()
    return {
        state.value: (now - since.get(state.value, now)).total_seconds()
        for state in SessionState
        if state not in OVER
    }


def check_byte_quota(
    db: Transaction,
    session: Session,
    size: int,
    quota: int | None,
    *,
    unstored: int = 0,
) -> None:
    """Raise :class:`QuotaReached` if ``size`` more bytes exceed the owner's quota.

    quota: the limit in bytes for all contributions in the owner's open sessions; None
        for no limit.
    unstored: the number of bytes that this transaction will store but has not inserted
        yet.
    """
    if quota is None:
        return
    stored = sa.func.coalesce(sa.func.sum(Contribution.size), 0)
    query = sa.select(stored).join(Session, Session.id == Contribution.session_id)
    of_owner = query.where(Session.owner_id == session.owner_id, _IS_OPEN)
    used = unstored + int(db.scalar(of_owner) or 0)
    if used + size > quota:
        raise QuotaReached(
            f"The open sessions of this coordinator store {used} bytes; {size} more do "
            f"not fit into the quota of {quota}."
        )


def lock_owners(db: Transaction, owner_ids: Collection[str]) -> None:
    """Lock the keys of these owners, in the order of their ids.

    Of two simultaneous requests the second one then sees what the first one stored.
    """
    query = sa.select(Credential.id).where(Credential.id.in_(owner_ids))
    db.execute(query.order_by(Credential.id).with_for_update(key_share=True))


def create_session(
    db: Transaction,
    caller: Caller,
    name: str,
    request: SessionRequest,
    quota: int | None = None,
) -> tuple[Session, bool]:
    """Create a session unless it exists; return it and whether it is new.

    quota: the number of open sessions that the caller may have; None for no limit.

    Raises QuotaReached if the caller already has that many open sessions. Raises
    SessionExists if the name is already used for a session with different terms.
    """
    caller.require_role(*_COORDINATORS)
    terms = draw_up_terms(name, request)
    existing = _find_by_name(db, caller.credential_id, name, lock=True)
    if existing is not None:
        if existing.terms != terms:
            raise SessionExists(f"The id {name!r} is taken.")
        return existing, False
    if quota is not None:
        lock_owners(db, [caller.credential_id])
        own = Session.owner_id == caller.credential_id
        used = db.scalar(sa.select(sa.func.count(Session.id)).where(own, _IS_OPEN)) or 0
        if used >= quota:
            raise QuotaReached(
                f"This key has {used} open sessions; its quota is {quota}."
            )
    now, retention = db.now(), request.retention
    session = Session(
        id=_choose_unused_id(db, caller, name),
        name=name,
        owner_id=caller.credential_id,
        title=request.about.title,
        terms=terms,
        state=SessionState.RECRUITING.value,
        round=0,
        attempt=0,
        stage_index=0,
        n_stages=0,
        quorum=0,
        deadline=now + timedelta(seconds=request.deadlines.recruiting),
        created_at=now,
        changed_at=now,
        keep_contributions=retention and retention.contributions,
        keep_session=retention and retention.session,
    )
    db.add(session)
    db.flush()
    db.add_all(
        Member(
            session_id=session.id,
            slot=slot.name,
            row_group=slot.row,
            column_group=slot.column,
            state=SlotState.INVITED.value,
        )
        for slot in read_terms(terms).layout.slots
    )
    db.flush()
    audit.add_line(db, session.id, "opened", now, digest=sha256(terms).hexdigest())
    return session, True


def _choose_unused_id(db: Transaction, caller: Caller, name: str) -> str:
    """Return an id for a new session: its name, with a suffix if that id is taken.

    Coordinators address sessions by name, so they never learn whether the id differs.
    """
    if find_session(db, name) is None:
        return name
    if caller.role is Role.ADMINISTRATOR:  # they address sessions by id
        raise SessionExists(f"The id {name!r} is taken.")
    return f"{name[:_STEM]}.{secrets.token_hex(4)}"


def cancel_session(
    db: Transaction, caller: Caller, session_id: str, reason: str = ""
) -> Session:
    """Cancel a session and store the reason for its parties. A repeat changes nothing."""
    caller.require_role(*_COORDINATORS)
    session = visible_session(db, caller, session_id, lock=True)
    if session.state == SessionState.CANCELLED:
        return session
    require_not_ended(session)
    apply_event(
        db,
        session,
        Event.CANCEL,
        db.now(),
        reason=Problem.CANCELLED.slug,
        detail=f"The coordinator says: {reason}" if reason else _NO_REASON,
    )
    return visible_session(db, caller, session_id)


def extend_deadline(
    db: Transaction, caller: Caller, session_id: str, deadline: datetime
) -> Session:
    """Postpone the session's deadline. Repeating the request changes nothing.

    Raises InvalidParameters if the new deadline is earlier than the current one, or
    more than 366 days from now. Raises NotReady while the analyst is computing, because
    no deadline applies then.
    """
    caller.require_role(*_COORDINATORS)
    session = visible_session(db, caller, session_id, lock=True)
    require_not_ended(session)
    if session.state == SessionState.STEPPING:
        raise NotReady("The analyst is computing, so it is not waiting for any party.")
    now = db.now()
    if deadline == session.deadline:
        return session
    if not session.deadline < deadline <= now + _LONGEST_WAIT:
        raise InvalidParameters(
            f"the session waits until {session.deadline:%Y-%m-%d %H:%M} UTC; give a "
            "later time, at most a year from now.",
            field="deadline",
        )
    since = session.changed_at
    apply_event(db, session, Event.EXTENDED, now, deadline=deadline, changed_at=since)
    return visible_session(db, caller, session_id)


def choose_run(
    db: Transaction, caller: Caller, session_id: str, n_clusters: int
) -> Session:
    """Select the clustering run whose labels the parties get. A repeat changes nothing.

    Raises InvalidParameters if no run of the session has this number of clusters.
    Raises NotReady if the runs are not finished yet. Raises RoundClosed if another run
    has already been selected.
    """
    caller.require_role(*_COORDINATORS)
    session = visible_session(db, caller, session_id, lock=True)
    evaluation = read_terms(session.terms).evaluation
    runs = evaluation.n_clusters if evaluation else ()
    if n_clusters not in runs:
        numbers = ", ".join(map(str, runs))
        raise InvalidParameters(
            f"the runs have {numbers} clusters." if runs else "there is only one run.",
            field="n_clusters",
        )
    run = runs.index(n_clusters)
    if session.state == SessionState.CHOOSING:
        apply_event(db, session, Event.CHOSEN, db.now(), chosen=run)
        return visible_session(db, caller, session_id)
    if session.chosen is None:
        require_not_ended(session)
        raise NotReady("There is nothing to choose yet: the runs are not done.")
    if session.chosen != run:
        raise RoundClosed("Another run was already chosen.")
    return session


def end_outdated_sessions(db: Transaction) -> list[tuple[Session, str]]:
    """Cancel the open sessions whose terms this release no longer accepts.

    Returns the cancelled sessions, as they were before, each with the message that says
    which value was refused. Parties and the coordinator see this message too, with the
    reason ``version-mismatch``.
    """
    ended = []
    query = sa.select(Session).where(_IS_OPEN).order_by(Session.id)
    for session in db.scalars(query).all():
        try:
            check_terms(read_terms(session.terms))
        except CoterieError as error:
            reason = Problem.VERSION_MISMATCH.slug
            if apply_event(
                db, session, Event.CANCEL, db.now(), reason=reason, detail=error.detail
            ):
                ended.append((session, error.detail))
    return ended


def stop_party(
    db: Transaction, caller: Caller, session_id: str, reason: StopReason | None
) -> None:
    """Record that the caller's party has stopped. A repeat changes nothing.

    A party that stops with the reason 'held' still gets tasks, and resumes when it
    withdraws the reason by sending None.

    Raises PartyStopped if the party has already stopped for good, for a different
    reason. Raises SessionOver if the session has ended.
    """
    session = visible_session(db, caller, session_id, lock=True)
    caller.require_role(Role.PARTY)
    [own] = (m for m in members_of(db, session.id) if m.slot == caller.slot)
    if own.stopped == reason:
        return
    require_not_stopped(db, session, own.slot)
    require_not_ended(session)
    own.stopped = None if reason is None else reason.value
    event = "continued" if reason is None else "stopped"
    audit.add_line(db, session.id, event, db.now(), slot=own.slot, reason=own.stopped)
    drop_stopped_parties(db, session.id)


def require_not_stopped(db: Transaction, session: Session, slot: str) -> None:
    """Raise :class:`PartyStopped` if the party in this slot has stopped for good."""
    reason = _find_stopped_parties(db, session.id).get(slot)
    if reason is not None:
        raise PartyStopped(describe_stop(slot, reason))


def drop_stopped_parties(db: Transaction, session_id: str) -> None:
    """Withdraw stopped parties' open tasks; end the session if it needs these parties."""
    stopped = _find_stopped_parties(db, session_id)
    if not stopped or (session := find_session(db, session_id, lock=True)) is None:
        return
    unanswered = set(stopped) - _slots_in_open_attempt(db, Contribution, session)
    db.execute(
        sa.delete(_TASKS).where(
            _TASKS.c.session_id == session.id,
            _TASKS.c.round == session.round,
            _TASKS.c.attempt == session.attempt,
            _TASKS.c.slot.in_(unanswered),
        )
    )
    if _needs_stopped_parties(db, session, len(stopped)):
        detail = " ".join(describe_stop(*stop) for stop in stopped.items())
        reason = Problem.PARTY_STOPPED.slug
        apply_event(
            db, session, Event.PARTY_STOPPED, db.now(), reason=reason, detail=detail
        )


def _find_stopped_parties(db: Transaction, session_id: str) -> dict[str, StopReason]:
    """Return the slots whose parties have stopped for good, with the reason of each."""
    rows = db.execute(_STOPPED, {"session_id": session_id})
    return {slot: StopReason(reason) for slot, reason in rows if reason}


_STOPPED = (
    sa.select(Member.slot, Member.stopped)
    .where(
        Member.session_id == sa.bindparam("session_id"),
        Member.stopped != StopReason.HELD.value,
    )
    .order_by(Member.row_group, Member.column_group)
)


def _needs_stopped_parties(db: Transaction, session: Session, n_stopped: int) -> bool:
    """Return whether the session cannot continue without the parties that have stopped.

    While the analyst computes a step it needs no party, so the check is left to the
    next round.
    """
    if session.state == SessionState.STEPPING:
        return False
    if session.state == SessionState.COLLECTING:
        return len(_slots_in_open_attempt(db, Task, session)) < session.quorum
    if session.state == SessionState.CHOOSING:
        terms = read_terms(session.terms)
        remaining = len(terms.layout.slots) - n_stopped
        quorum = protocol(terms.protocol.name).quorum(check_terms(terms), terms.layout)
        return remaining < quorum
    return True
