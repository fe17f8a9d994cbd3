"""Sessions: their rows, permissions, quotas and stops."""

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
from analyst_service.models import Contribution, Member, Principal, Session, Task, table
from analyst_service.outbox import SessionMove, write_notices
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
from clustering_protocols.session_terms import check_terms, draw_up
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
_STEM = 54  # characters of the name in an id that has a random suffix


# Rows


_SESSIONS, _TASKS = table(Session), table(Task)
# built once, because every request executes them
_BY_IDS = (
    sa.select(Session)
    .where(Session.id.in_(sa.bindparam("session_ids", expanding=True)))
    .order_by(Session.id)
    .execution_options(populate_existing=True)
)
_BY_IDS_LOCKED = _BY_IDS.with_for_update()


def move(
    db: Transaction,
    session: Session,
    event: Event,
    now: datetime,
    token: str | None = None,
    **changes: Any,
) -> bool:
    """Move a session on, unless it has moved since it was read.

    A compare-and-set on state, round and attempt, and on the lease's token if a step
    moves the session, so that one of several concurrent moves wins. A move ends a lease,
    is audited, and is announced to the mail addresses of the session.
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
    moved = SessionMove(*row)
    audit.note_locked(db, [session.id])
    digest = changes.get("state_digest") or changes.get("summary_digest")
    if agreement := changes.get("agreement"):
        digest = sha256(agreement).hexdigest()
    audit.append(
        db,
        session.id,
        event.value,
        now,
        round=moved.round,
        attempt=moved.attempt,
        digest=digest,
        reason=changes.get("reason"),
        stage=changes.get("stage"),
    )
    write_notices(db, moved, now)
    return True


_POSITION = ("id", "state", "round", "attempt")
# the names of the parameters of each execution decide which columns are set
_MOVE = (
    sa.update(_SESSIONS)
    .where(*(_SESSIONS.c[name] == sa.bindparam(f"from_{name}") for name in _POSITION))
    .returning(*(_SESSIONS.c[name] for name in SessionMove._fields))
)
_MOVE_BY_LEASE = _MOVE.where(_SESSIONS.c.lease_token == sa.bindparam("token"))


def find(db: Transaction, session_id: str, *, lock: bool = False) -> Session | None:
    """Return a session as it is now, locked on request; None if it does not exist."""
    return with_ids(db, [session_id], lock=lock).get(session_id)


def with_ids(
    db: Transaction, session_ids: Collection[str], *, lock: bool = False
) -> dict[str, Session]:
    """Return sessions as they are now, by id; ``lock`` locks them in the order of ids."""
    query = _BY_IDS_LOCKED if lock else _BY_IDS
    rows = db.scalars(query, {"session_ids": list(session_ids)})
    sessions = {session.id: session for session in rows}
    if lock:
        audit.note_locked(db, sessions)
    return sessions


def _by_name(
    db: Transaction, owner_id: str | None, name: str, *, lock: bool
) -> Session | None:
    query = sa.select(Session.id).where(
        Session.owner_id == owner_id, Session.name == name
    )
    session_id = db.scalar(query)
    return None if session_id is None else find(db, session_id, lock=lock)


def members_of(db: Transaction, session_id: str) -> list[Member]:
    """Return the slots of a session in order."""
    query = sa.select(Member).where(Member.session_id == session_id)
    return list(db.scalars(query.order_by(Member.row_group, Member.column_group)))


def _slots_having(
    db: Transaction, kind: type[Task | Contribution], session: Session
) -> set[str]:
    """Return the slots that have a task, or a contribution, in the open attempt."""
    query = sa.select(kind.slot).where(
        kind.session_id == session.id,
        kind.round == session.round,
        kind.attempt == session.attempt,
    )
    return set(db.scalars(query))


def find_awaited(db: Transaction, sessions: Iterable[Session]) -> dict[str, list[str]]:
    """Return the slots for which sessions wait, by the sessions' ids."""
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


def visible(
    db: Transaction,
    caller: Caller,
    session_id: str,
    *,
    lock: bool = False,
    deleted: bool = False,
    loaded: Mapping[str, Session] | None = None,
) -> Session:
    """Return a session that the caller may see, by the same rule for all endpoints.

    Raises NotFound if it does not exist or is somebody else's, SessionOver if it was
    deleted (unless ``deleted``). ``loaded``: the sessions of parties, by id, that
    :func:`with_ids` has read already.
    """
    if caller.role is Role.ADMINISTRATOR:
        session = find(db, session_id, lock=lock)
    elif caller.role is Role.COORDINATOR:
        session = _by_name(db, caller.principal_id, session_id, lock=lock)
    else:
        own_id = caller.session_id or ""
        own = find(db, own_id, lock=lock) if loaded is None else loaded.get(own_id)
        session = own if own is not None and own.name == session_id else None
    if session is None:
        raise NotFound("No session of this id is visible to this credential.")
    if session.deleted_at is not None and not deleted:
        raise SessionOver("It was deleted.", session.state, session.reason)
    return session


def public_id(caller: Caller, session: Session) -> str:
    """Return the id by which a caller knows a session."""
    return session.id if caller.role is Role.ADMINISTRATOR else session.name


def require_alive(session: Session) -> None:
    """Raise :class:`SessionOver`, with state and reason, if the session has ended."""
    state = SessionState(session.state)
    if state in OVER:
        detail = session.detail or f"Session {session.name!r} is {state}."
        raise SessionOver(detail, state.value, session.reason)


def count_sessions(db: Transaction) -> dict[str, float]:
    """Return the number of sessions in each state."""
    query = sa.select(Session.state, sa.func.count()).group_by(Session.state)
    numbers = dict(db.execute(query).all())
    return {state.value: numbers.get(state.value, 0) for state in SessionState}


def longest_waits(db: Transaction) -> dict[str, float]:
    """Return the longest time (seconds) that any session has spent in each open state.

    It is 0 for a state in which there is no session.
    """
    query = sa.select(Session.state, sa.func.min(Session.changed_at))
    since = dict(db.execute(query.group_by(Session.state)).all())
    now = db.now()
    return {
        state.value: (now - since.get(state.value, now)).total_seconds()
        for state in SessionState
        if state not in OVER
    }


# Quotas; None is no quota. With a quota, the principal's row is locked until the
# transaction ends, so that the second of two simultaneous requests sees the first.


def check_bytes(
    db: Transaction,
    session: Session,
    size: int,
    quota: int | None,
    *,
    unstored: int = 0,
    lock: bool = False,
) -> None:
    """Raise :class:`QuotaReached` if bytes exceed the quota of the session's owner.

    unstored: bytes that are about to be stored and are in no row yet.
    """
    if quota is None:
        return
    if lock:
        _lock_principal(db, session.owner_id)
    stored = sa.func.coalesce(sa.func.sum(Contribution.size), 0)
    query = sa.select(stored).join(Session, Session.id == Contribution.session_id)
    of_owner = query.where(Session.owner_id == session.owner_id, _IS_OPEN)
    used = unstored + int(db.scalar(of_owner) or 0)
    if used + size > quota:
        raise QuotaReached(
            f"The open sessions of this coordinator hold {used} bytes; {size} more do "
            f"not fit into the quota of {quota}."
        )


def _lock_principal(db: Transaction, principal_id: str | None) -> None:
    query = sa.select(Principal.id).where(Principal.id == principal_id)
    db.execute(query.with_for_update(key_share=True))


# A coordinator's requests


def create(
    db: Transaction,
    caller: Caller,
    name: str,
    request: SessionRequest,
    quota: int | None = None,
) -> tuple[Session, bool]:
    """Open a session; return it and whether it is new. A repeat changes nothing.

    Raises QuotaReached if the caller has as many open sessions as its quota allows.
    Raises SessionExists if the id is taken by other terms.
    """
    caller.require(*_COORDINATORS)
    terms = draw_up(name, request)
    existing = _by_name(db, caller.principal_id, name, lock=True)
    if existing is not None:
        if existing.terms != terms:
            raise SessionExists(f"The id {name!r} is taken.")
        return existing, False
    if quota is not None:
        _lock_principal(db, caller.principal_id)
        own = Session.owner_id == caller.principal_id
        used = db.scalar(sa.select(sa.func.count(Session.id)).where(own, _IS_OPEN)) or 0
        if used >= quota:
            raise QuotaReached(
                f"This key has {used} open sessions; its quota is {quota}."
            )
    now, retention = db.now(), request.retention
    session = Session(
        id=_free_id(db, caller, name),
        name=name,
        owner_id=caller.principal_id,
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
    audit.append(db, session.id, "opened", now, digest=sha256(terms).hexdigest())
    return session, True


def _free_id(db: Transaction, caller: Caller, name: str) -> str:
    """Return the id of a new session: its name, unless that is another session's id.

    Coordinators use names and do not learn whether the two differ.
    """
    if find(db, name) is None:
        return name
    if caller.role is Role.ADMINISTRATOR:  # administrators use ids, not names
        raise SessionExists(f"The id {name!r} is taken.")
    return f"{name[:_STEM]}.{secrets.token_hex(4)}"


def cancel(
    db: Transaction, caller: Caller, session_id: str, reason: str = ""
) -> Session:
    """End a session, for a reason that the parties read; a repeat changes nothing."""
    caller.require(*_COORDINATORS)
    session = visible(db, caller, session_id, lock=True)
    if session.state == SessionState.CANCELLED:
        return session
    require_alive(session)
    move(
        db,
        session,
        Event.CANCEL,
        db.now(),
        reason=Problem.CANCELLED.slug,
        detail=f"The coordinator says: {reason}" if reason else _NO_REASON,
    )
    return visible(db, caller, session_id)


def extend(
    db: Transaction, caller: Caller, session_id: str, deadline: datetime
) -> Session:
    """Set a later deadline; a repeat changes nothing.

    Raises InvalidParameters if it is not later, or more than a year away.
    Raises NotReady while the analyst computes a step and waits for nobody.
    """
    caller.require(*_COORDINATORS)
    session = visible(db, caller, session_id, lock=True)
    require_alive(session)
    if session.state == SessionState.STEPPING:
        raise NotReady("The analyst is computing and waits for nobody.")
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
    move(db, session, Event.EXTENDED, now, deadline=deadline, changed_at=since)
    return visible(db, caller, session_id)


def choose(
    db: Transaction, caller: Caller, session_id: str, n_clusters: int
) -> Session:
    """Select one of the runs; a repeat changes nothing.

    Raises InvalidParameters if no run of the session has this number of clusters.
    Raises NotReady if the runs are not done, RoundClosed if another run is selected.
    """
    caller.require(*_COORDINATORS)
    session = visible(db, caller, session_id, lock=True)
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
        move(db, session, Event.CHOSEN, db.now(), chosen=run)
        return visible(db, caller, session_id)
    if session.chosen is None:
        require_alive(session)
        raise NotReady("There is nothing to choose yet: the runs are not done.")
    if session.chosen != run:
        raise RoundClosed("Another run was already chosen.")
    return session


def end_outdated(db: Transaction) -> list[tuple[Session, str]]:
    """End the open sessions whose terms this release refuses; return them and the reasons.

    The returned sessions have their earlier state. Parties and the coordinator
    get the reason ``version-mismatch``, and which value was refused.
    """
    ended = []
    query = sa.select(Session).where(_IS_OPEN).order_by(Session.id)
    for session in db.scalars(query).all():
        try:
            check_terms(read_terms(session.terms))
        except CoterieError as error:
            reason = Problem.VERSION_MISMATCH.slug
            if move(
                db, session, Event.CANCEL, db.now(), reason=reason, detail=error.detail
            ):
                ended.append((session, error.detail))
    return ended


# Parties that stop for good


def stop_party(
    db: Transaction, caller: Caller, session_id: str, reason: StopReason | None
) -> None:
    """Record that the caller's own party stopped; a repeat changes nothing.

    A held party still gets tasks, and continues when it withdraws its reason (None).

    Raises PartyStopped if it stopped for good already, for another reason.
    Raises SessionOver if the session has ended.
    """
    session = visible(db, caller, session_id, lock=True)
    caller.require(Role.PARTY)
    [own] = (m for m in members_of(db, session.id) if m.slot == caller.slot)
    if own.stopped == reason:
        return
    require_not_stopped(db, session, own.slot)
    require_alive(session)
    own.stopped = None if reason is None else reason.value
    event = "continued" if reason is None else "stopped"
    audit.append(db, session.id, event, db.now(), slot=own.slot, reason=own.stopped)
    drop_stopped_parties(db, session.id)


def require_not_stopped(db: Transaction, session: Session, slot: str) -> None:
    """Raise :class:`PartyStopped` if the party of a slot has stopped for good."""
    reason = _find_stopped(db, session.id).get(slot)
    if reason is not None:
        raise PartyStopped(describe_stop(slot, reason))


def drop_stopped_parties(db: Transaction, session_id: str) -> None:
    """Withdraw the tasks of stopped parties; end a session that needs these parties."""
    stopped = _find_stopped(db, session_id)
    if not stopped or (session := find(db, session_id, lock=True)) is None:
        return
    unanswered = set(stopped) - _slots_having(db, Contribution, session)
    db.execute(
        sa.delete(_TASKS).where(
            _TASKS.c.session_id == session.id,
            _TASKS.c.round == session.round,
            _TASKS.c.attempt == session.attempt,
            _TASKS.c.slot.in_(unanswered),
        )
    )
    if _needs_stopped(db, session, len(stopped)):
        detail = " ".join(describe_stop(*stop) for stop in stopped.items())
        reason = Problem.PARTY_STOPPED.slug
        move(db, session, Event.PARTY_STOPPED, db.now(), reason=reason, detail=detail)


def _find_stopped(db: Transaction, session_id: str) -> dict[str, StopReason]:
    """Return the slots whose parties stopped for good, and their reasons."""
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


def _needs_stopped(db: Transaction, session: Session, n_stopped: int) -> bool:
    """Return whether a session cannot continue without the parties that stopped.

    While the analyst computes a step no party is needed: the next round decides.
    """
    if session.state == SessionState.STEPPING:
        return False
    if session.state == SessionState.COLLECTING:
        return len(_slots_having(db, Task, session)) < session.quorum
    if session.state == SessionState.CHOOSING:
        terms = read_terms(session.terms)
        remaining = len(terms.layout.slots) - n_stopped
        quorum = protocol(terms.protocol.name).quorum(check_terms(terms), terms.layout)
        return remaining < quorum
    return True
