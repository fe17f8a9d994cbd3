"""Sessions: their rows, what may be done with them and by whom, quotas, and stops."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from hashlib import sha256
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.auth.service import Caller, Role
from analyst_service.clock import Clock
from analyst_service.storage.database import Database
from analyst_service.storage.models import (
    AuditLine,
    Contribution,
    Member,
    Principal,
    Session,
    Task,
    table,
)
from analyst_service.transactions.audit import Audit, hold
from analyst_service.transactions.outbox import Outbox, SessionMove
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
    after,
)
from clustering_protocols.wire.stop_reasons import describe_stop

_IS_OPEN: Final = Session.state.not_in(sorted(state.value for state in OVER))


class Quotas:
    """Quotas in one transaction; None: no quota.

    A principal's row is locked until the transaction ends where one is set: of two that
    come at once, the second one sees the first.
    """

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def check_sessions(self, principal_id: str | None, quota: int | None) -> None:
        """Raise :class:`QuotaReached` if a principal may open no further session."""
        if quota is None:
            return
        self._lock(principal_id)
        used = self._sum(
            sa.select(sa.func.count(Session.id)).where(
                Session.owner_id == principal_id, _IS_OPEN
            )
        )
        if used >= quota:
            raise QuotaReached(
                f"This key has {used} open sessions; its quota is {quota}."
            )

    def check_bytes(
        self,
        session: Session,
        size: int,
        quota: int | None,
        *,
        more: int = 0,
        lock: bool = False,
    ) -> None:
        """Raise :class:`QuotaReached` if bytes do not fit into the quota of an owner.

        more: bytes that are about to be stored, and are in no row yet.
        """
        if quota is None:
            return
        if lock:
            self._lock(session.owner_id)
        used = more + self._sum_stored(session.owner_id)
        if used + size > quota:
            raise QuotaReached(
                f"The open sessions of this coordinator hold {used} bytes; {size} more "
                f"do not fit into the quota of {quota}."
            )

    def _sum_stored(self, owner_id: str) -> int:
        size = sa.func.coalesce(sa.func.sum(Contribution.size), 0)
        joined = sa.select(size).join(Session, Session.id == Contribution.session_id)
        return self._sum(joined.where(Session.owner_id == owner_id, _IS_OPEN))

    def _sum(self, query: sa.Select[int]) -> int:
        return int(self._transaction.scalar(query) or 0)

    def _lock(self, principal_id: str | None) -> None:
        self._transaction.execute(
            sa.select(Principal.id)
            .where(Principal.id == principal_id)
            .with_for_update(key_share=True)
        )


# Queries of most requests, written once: to write one costs more than to send it.


def _queries(*conditions: sa.ColumnElement[bool]) -> dict[bool, sa.Select[Session]]:
    """Return the queries for sessions as they are now, without a lock and with one."""
    query = sa.select(Session).where(*conditions)
    query = query.execution_options(populate_existing=True)
    return {False: query, True: query.with_for_update()}


def _slots_of(rows: sa.Table) -> sa.Select[str]:
    return sa.select(rows.c.slot).where(
        rows.c.session_id == sa.bindparam("session_id"),
        rows.c.round == sa.bindparam("round"),
        rows.c.attempt == sa.bindparam("attempt"),
    )


_BY_ID = _queries(Session.id == sa.bindparam("session_id"))
_BY_IDS = {
    lock: query.order_by(Session.id)
    for lock, query in _queries(
        Session.id.in_(sa.bindparam("session_ids", expanding=True))
    ).items()
}
_BY_NAME = _queries(
    Session.owner_id == sa.bindparam("owner_id"), Session.name == sa.bindparam("name")
)
_MEMBERS = (
    sa.select(Member)
    .where(Member.session_id == sa.bindparam("session_id"))
    .order_by(Member.row_group, Member.column_group)
)
_SLOTS = {kind: _slots_of(table(kind)) for kind in (Task, Contribution)}
_STOPPED = (
    sa.select(Member.slot, Member.stopped)
    .where(Member.session_id == sa.bindparam("session_id"))
    .where(Member.stopped.is_not(None))
    .order_by(Member.row_group, Member.column_group)
)
_TASKS = table(Task)
_WITHDRAWN = sa.delete(_TASKS).where(
    *(
        _TASKS.c[name] == sa.bindparam(name)
        for name in ("session_id", "round", "attempt")
    ),
    _TASKS.c.slot.in_(sa.bindparam("slots", expanding=True)),
)
_SESSIONS = table(Session)


@cache
def _build_move(*names: str, by_lease: bool) -> sa.UpdateBase:
    """Return what writes these columns and ends a lease, unless a session has moved."""
    unmoved = [
        _SESSIONS.c[name] == sa.bindparam(f"of_{name}")
        for name in ("id", "state", "round", "attempt")
    ]
    if by_lease:
        unmoved.append(_SESSIONS.c.lease_token == sa.bindparam("by"))
    free: dict[str, Any] = {
        "lease_token": None,
        "lease_until": None,
        "step_attempts": 0,
    }
    values = free | {name: sa.bindparam(f"new_{name}") for name in names}
    return sa.update(_SESSIONS).where(*unmoved).values(values).returning(_SESSIONS.c.id)


class SessionRepository:
    """Sessions in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._audit = Audit(transaction)
        self._outbox = Outbox(transaction)

    def add(self, session: Session, members: Sequence[Member]) -> None:
        """Store a session and its empty slots."""
        self._transaction.add(session)
        self._transaction.flush()
        self._transaction.add_all(members)
        self._transaction.flush()

    def get(self, session_id: str, *, lock: bool = False) -> Session | None:
        """Return a session as it is now; with a lock, nobody else changes it."""
        return self._one(_BY_ID[lock], lock=lock, session_id=session_id)

    def with_ids(
        self, session_ids: Collection[str], *, lock: bool = False
    ) -> dict[str, Session]:
        """Return sessions as they are now, by id; locks are taken in one order for all."""
        here = {"session_ids": list(session_ids)}
        found = self._transaction.scalars(_BY_IDS[lock], here)
        sessions = {session.id: session for session in found}
        if lock:
            hold(self._transaction, sessions)
        return sessions

    def find_by_name(
        self, owner_id: str | None, name: str, *, lock: bool = False
    ) -> Session | None:
        """Return an owner's session as it is now, by its name."""
        return self._one(_BY_NAME[lock], lock=lock, owner_id=owner_id, name=name)

    def alive(self) -> list[Session]:
        """Return all sessions that have not ended, by id."""
        over = [state.value for state in OVER]
        query = sa.select(Session).where(Session.state.not_in(over))
        return list(self._transaction.scalars(query.order_by(Session.id)))

    def count(self) -> dict[str, int]:
        """Return the number of sessions in each state that has any."""
        query = sa.select(Session.state, sa.func.count()).group_by(Session.state)
        return dict(self._transaction.execute(query).all())

    def standing_since(self) -> dict[str, datetime]:
        """Return when the session moved that has stood longest in each state."""
        query = sa.select(Session.state, sa.func.min(Session.changed_at))
        return dict(self._transaction.execute(query.group_by(Session.state)).all())

    def members(self, session_id: str) -> list[Member]:
        """Return the slots of a session in order."""
        return list(self._transaction.scalars(_MEMBERS, {"session_id": session_id}))

    def find_asked(self, session: Session) -> set[str]:
        """Return the slots that have a task in the open attempt."""
        return self._slots(Task, session)

    def find_answered(self, session: Session) -> set[str]:
        """Return the slots whose contribution to the open attempt is stored."""
        return self._slots(Contribution, session)

    def find_stopped(self, session_id: str) -> dict[str, str]:
        """Return the slots whose parties stopped for good, each with its word."""
        found = self._transaction.execute(_STOPPED, {"session_id": session_id})
        return {slot: str(word) for slot, word in found}

    def withdraw_tasks(self, session: Session, slots: Collection[str]) -> None:
        """Ask nothing more of slots in the open attempt, but of those that answered."""
        unanswered = set(slots) - self.find_answered(session)
        here = {"session_id": session.id, "round": session.round}
        here |= {"attempt": session.attempt, "slots": list(unanswered)}
        self._transaction.execute(_WITHDRAWN, here)

    def move(
        self,
        session: Session,
        event: Event,
        now: datetime,
        token: str | None = None,
        **changes: Any,
    ) -> bool:
        """Move a session on, unless it has moved since it was read.

        Compare-and-set on state, round and attempt, and on the token of the lease where
        a step moves it: of several that try, one wins. Every move ends a lease, is in
        the audit, and is told to anyone who left an address.
        """
        state = SessionState(session.state)
        values = {"state": after(state, event).value, "changed_at": now} | changes
        here = {
            "of_id": session.id,
            "of_state": state.value,
            "of_round": session.round,
            "of_attempt": session.attempt,
            "by": token,
        }
        statement = _build_move(*sorted(values), by_lease=token is not None)
        new = {f"new_{name}": value for name, value in values.items()}
        if self._transaction.execute(statement, here | new).first() is None:
            return False
        hold(self._transaction, [session.id])
        self._audit.append(
            session.id, event.value, now, **_describe_move(session, changes)
        )
        self._outbox.note(
            _build_session_move(session, after(state, event), now, changes), now
        )
        return True

    def _one(
        self, query: sa.Select[Session], *, lock: bool, **of: str | None
    ) -> Session | None:
        session = self._transaction.scalar(query, of)
        if lock and session is not None:
            hold(self._transaction, [session.id])
        return session

    def _slots(self, kind: type[Task | Contribution], session: Session) -> set[str]:
        here = {
            "session_id": session.id,
            "round": session.round,
            "attempt": session.attempt,
        }
        return set(self._transaction.scalars(_SLOTS[kind], here))


def _build_session_move(
    session: Session, state: SessionState, now: datetime, changes: Mapping[str, Any]
) -> SessionMove:
    """Return where a session stands behind a move."""
    return SessionMove(
        session.id,
        state,
        changes.get("round", session.round),
        changes.get("attempt", session.attempt),
        changes.get("changed_at", now),
        changes.get("deadline", session.deadline),
        changes.get("reason"),
    )


def _describe_move(session: Session, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the audit says of a move: where to, digests, the reason of an end."""
    digest = changes.get("state_digest") or changes.get("summary_digest")
    if agreement := changes.get("agreement"):
        digest = sha256(agreement).hexdigest()
    return {
        "round": changes.get("round", session.round),
        "attempt": changes.get("attempt", session.attempt),
        "digest": digest,
        "reason": changes.get("reason"),
        "stage": changes.get("stage"),
    }


_LONGEST_WAIT = timedelta(days=366)
_NO_REASON = "Stopped on request."
_STEM = 54  # of a name, where an id is the name and more


class SessionService:
    """Sessions in one transaction."""

    def __init__(self, transaction: Transaction, clock: Clock) -> None:
        self._sessions = SessionRepository(transaction)
        self._audit = Audit(transaction)
        self._quotas = Quotas(transaction)
        self._clock = clock

    def create(
        self,
        caller: Caller,
        session_id: str,
        request: SessionRequest,
        quota: int | None = None,
    ) -> tuple[Session, bool]:
        """Return the session and whether it is new; a repeat changes nothing.

        Raises QuotaReached if the caller has as many open sessions as its quota says.
        Raises SessionExists if the id is taken by other terms.
        """
        caller.require(Role.COORDINATOR, Role.ADMINISTRATOR)
        terms = draw_up(session_id, request)
        existing = self._sessions.find_by_name(
            caller.principal_id, session_id, lock=True
        )
        if existing is not None:
            if existing.terms != terms:
                raise SessionExists(f"The id {session_id!r} is taken.")
            return existing, False
        self._quotas.check_sessions(caller.principal_id, quota)
        session = self._new(caller, session_id, request, terms)
        self._sessions.add(session, _empty_slots(session))
        digest = sha256(terms).hexdigest()
        self._audit.append(session.id, "opened", session.created_at, digest=digest)
        return session, True

    def visible(
        self,
        caller: Caller,
        session_id: str,
        *,
        lock: bool = False,
        deleted: bool = False,
        known: Mapping[str, Session] | None = None,
    ) -> Session:
        """Return a session that the caller may see; the one rule for all endpoints.

        Another's session answers as if it did not exist; one that was deleted is over,
        but where ``deleted`` asks for what is left of it. Of parties' sessions all may be
        ``known``, by id, from :meth:`with_ids`.
        """
        session = self._find(caller, session_id, known, lock=lock)
        if session is None:
            raise NotFound("No session of this id is visible to this credential.")
        if session.deleted_at is not None and not deleted:
            raise SessionOver("It was deleted.", session.state, session.reason)
        return session

    def with_ids(
        self, session_ids: Collection[str], *, lock: bool = False
    ) -> dict[str, Session]:
        """Return sessions by id, anyone who may see them; those that exist."""
        return self._sessions.with_ids(session_ids, lock=lock)

    def members(self, session: Session) -> list[Member]:
        """Return the slots of a session in order."""
        return self._sessions.members(session.id)

    def find_awaited(self, session: Session) -> set[str]:
        """Return the slots for which the session is waiting."""
        if session.state == SessionState.RECRUITING:
            members = self._sessions.members(session.id)
            return {m.slot for m in members if m.state != SlotState.JOINED}
        if session.state == SessionState.COLLECTING:
            return self._sessions.find_asked(session) - self._sessions.find_answered(
                session
            )
        return set()

    def require_going(self, session: Session, slot: str) -> None:
        """Raise :class:`PartyStopped` if the party of a slot has stopped for good."""
        word = self._sessions.find_stopped(session.id).get(slot)
        if word is not None:
            raise PartyStopped(describe_stop(slot, StopReason(word)))

    def agreement(self, caller: Caller, session_id: str) -> bytes:
        """Return the exact bytes of the agreement."""
        session = self.visible(caller, session_id)
        if session.agreement is None:
            require_alive(session)
            raise NotReady("The agreement exists once all parties have joined.")
        return session.agreement

    def audit(
        self, caller: Caller, session_id: str, after: int, limit: int
    ) -> tuple[str, list[AuditLine]]:
        """Return the session's name among its parties, and lines of its audit.

        Not to parties, for small answers can be guessed: a digest of few possible bytes
        tells which of them they were.
        """
        caller.require(Role.COORDINATOR, Role.ADMINISTRATOR)
        session = self.visible(caller, session_id, deleted=True)
        return session.name, self._audit.page(session.id, after, limit)

    def cancel(self, caller: Caller, session_id: str, reason: str = "") -> Session:
        """End a session, for a reason that the parties read; a repeat changes nothing."""
        caller.require(Role.COORDINATOR, Role.ADMINISTRATOR)
        session = self.visible(caller, session_id, lock=True)
        if session.state == SessionState.CANCELLED:
            return session
        require_alive(session)
        self._sessions.move(
            session,
            Event.CANCEL,
            self._clock.now(),
            reason=Problem.CANCELLED.slug,
            detail=f"The coordinator says: {reason}" if reason else _NO_REASON,
        )
        return self.visible(caller, session_id)

    def extend(self, caller: Caller, session_id: str, deadline: datetime) -> Session:
        """Wait until a later deadline; a repeat changes nothing.

        Raises InvalidParameters if it is not later, or more than a year away.
        Raises NotReady: while a round is stepped: nobody is awaited.
        """
        caller.require(Role.COORDINATOR, Role.ADMINISTRATOR)
        session = self.visible(caller, session_id, lock=True)
        require_alive(session)
        if session.state == SessionState.STEPPING:
            raise NotReady("The analyst is at work, and waits for nobody.")
        now = self._clock.now()
        if deadline == session.deadline:
            return session
        if not session.deadline < deadline <= now + _LONGEST_WAIT:
            raise InvalidParameters(
                f"the session waits until {session.deadline:%Y-%m-%d %H:%M} "
                "UTC; give a later time, at most a year from now.",
                field="deadline",
            )
        self._sessions.move(
            session,
            Event.EXTENDED,
            now,
            deadline=deadline,
            changed_at=session.changed_at,
        )
        return self.visible(caller, session_id)

    def choose(self, caller: Caller, session_id: str, n_clusters: int) -> Session:
        """Choose the run that counts; a repeat changes nothing.

        Raises InvalidParameters if no run of the session has so many clusters.
        Raises NotReady, RoundClosed if the runs are not done, or another one was
            chosen.
        """
        caller.require(Role.COORDINATOR, Role.ADMINISTRATOR)
        session = self.visible(caller, session_id, lock=True)
        evaluation = read_terms(session.terms).evaluation
        runs = evaluation.n_clusters if evaluation else ()
        if n_clusters not in runs:
            known = ", ".join(map(str, runs))
            raise InvalidParameters(
                f"the runs have {known or 'one number'}.", field="n_clusters"
            )
        run = runs.index(n_clusters)
        if session.state != SessionState.CHOOSING:
            return self._require_chosen(session, run)
        now = self._clock.now()
        self._sessions.move(session, Event.CHOSEN, now, chosen=run)
        return self.visible(caller, session_id)

    def _require_chosen(self, session: Session, run: int) -> Session:
        """Return a session whose choice is over; refuse any other."""
        if session.chosen is not None:
            if session.chosen == run:
                return session
            raise RoundClosed("Another run was chosen, and that stands.")
        require_alive(session)
        raise NotReady("There is nothing to choose yet: the runs are not done.")

    def _find(
        self,
        caller: Caller,
        session_id: str,
        known: Mapping[str, Session] | None,
        *,
        lock: bool,
    ) -> Session | None:
        """Return what a caller means by an id: among all sessions, or among its own."""
        if caller.role is Role.ADMINISTRATOR:
            return self._sessions.get(session_id, lock=lock)
        if caller.role is Role.COORDINATOR:
            return self._sessions.find_by_name(
                caller.principal_id, session_id, lock=lock
            )
        own_id = caller.session_id or ""
        own = (
            self._sessions.get(own_id, lock=lock)
            if known is None
            else known.get(own_id)
        )
        return own if own is not None and own.name == session_id else None

    def _free_id(self, caller: Caller, name: str) -> str:
        """Return the id of a new session: its name, unless that is another owner's id.

        A coordinator does not learn which it is.
        """
        if self._sessions.get(name) is None:
            return name
        if caller.role is Role.ADMINISTRATOR:  # who would mean the other one by it
            raise SessionExists(f"The id {name!r} is taken.")
        return f"{name[:_STEM]}.{secrets.token_hex(4)}"

    def _new(
        self, caller: Caller, session_id: str, request: SessionRequest, terms: bytes
    ) -> Session:
        now = self._clock.now()
        return Session(
            id=self._free_id(caller, session_id),
            name=session_id,
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
        )


def count_sessions(database: Database) -> dict[str, int]:
    """Return the number of sessions in each state."""
    with database.read() as transaction:
        found = SessionRepository(transaction).count()
    return {state.value: found.get(state.value, 0) for state in SessionState}


def longest_waits(database: Database, clock: Clock) -> dict[str, float]:
    """Return for how many seconds a session has stood in each state, at most.

    Of the states in which something is waited for; 0 where no session is in one.
    """
    with database.read() as transaction:
        since = SessionRepository(transaction).standing_since()
    now = clock.now()
    return {
        state.value: (now - since.get(state.value, now)).total_seconds()
        for state in SessionState
        if state not in OVER
    }


def require_alive(session: Session) -> None:
    """Raise :class:`SessionOver`, with state and reason, if the session has ended."""
    state = SessionState(session.state)
    if state in OVER:
        detail = session.detail or f"Session {session.name!r} is {state}."
        raise SessionOver(detail, state.value, session.reason)


def known_as(caller: Caller, session: Session) -> str:
    """Return what a caller means a session by."""
    return session.id if caller.role is Role.ADMINISTRATOR else session.name


def _empty_slots(session: Session) -> list[Member]:
    layout = read_terms(session.terms).layout
    return [
        Member(
            session_id=session.id,
            slot=slot.name,
            row_group=slot.row,
            column_group=slot.column,
            state=SlotState.INVITED.value,
        )
        for slot in layout.slots
    ]


class OutdatedSession(NamedTuple):
    """A session that was ended, the state that it was in, and the reason."""

    session_id: str
    state: str
    reason: str


def end_outdated(transaction: Transaction, clock: Clock) -> list[OutdatedSession]:
    """End the open sessions whose terms this release refuses; return them by id.

    Parties and coordinator read the reason: version-mismatch, and what is refused.
    """
    sessions = SessionRepository(transaction)
    ended = []
    for session in sessions.alive():
        refused = _refusal(session.terms)
        if refused is None:
            continue
        outdated = OutdatedSession(session.id, session.state, refused)
        if sessions.move(
            session,
            Event.CANCEL,
            clock.now(),
            reason=Problem.VERSION_MISMATCH.slug,
            detail=refused,
        ):
            ended.append(outdated)
    return ended


def _refusal(terms: bytes) -> str | None:
    """Return why this release refuses terms; None where it continues with them."""
    try:
        check_terms(read_terms(terms))
    except CoterieError as error:
        return error.detail
    return None


class PartyStops:
    """Stops of parties in one transaction."""

    def __init__(self, transaction: Transaction, clock: Clock) -> None:
        self._service = SessionService(transaction, clock)
        self._sessions = SessionRepository(transaction)
        self._audit = Audit(transaction)
        self._clock = clock

    def stop(self, caller: Caller, session_id: str, reason: StopReason) -> None:
        """Note that the caller's own party stopped for good; a repeat changes nothing.

        Raises PartyStopped if it stopped already, and gave another reason.
        Raises SessionOver if the session ended before.
        """
        session = self._service.visible(caller, session_id, lock=True)
        caller.require(Role.PARTY)
        [own] = (m for m in self._service.members(session) if m.slot == caller.slot)
        if own.stopped == reason:
            return
        self._service.require_going(session, own.slot)
        require_alive(session)
        own.stopped = reason.value
        now = self._clock.now()
        self._audit.append(
            session.id, "stopped", now, slot=own.slot, reason=reason.value
        )
        self.go_on_without(session.id)

    def go_on_without(self, session_id: str) -> None:
        """Ask nothing more of parties that stopped; end a session that needs them."""
        stopped = self._sessions.find_stopped(session_id)
        if not stopped:
            return
        session = self._sessions.get(session_id, lock=True)
        if session is None:
            return
        self._sessions.withdraw_tasks(session, stopped)
        if self._needs(session, stopped):
            self._sessions.move(
                session,
                Event.PARTY_STOPPED,
                self._clock.now(),
                reason=Problem.PARTY_STOPPED.slug,
                detail=" ".join(
                    describe_stop(slot, StopReason(word))
                    for slot, word in stopped.items()
                ),
            )

    def _needs(self, session: Session, stopped: Mapping[str, str]) -> bool:
        """Return whether a session cannot go on without the parties that stopped.

        While the analyst works nobody is needed: the next round decides.
        """
        if session.state == SessionState.STEPPING:
            return False
        if session.state == SessionState.COLLECTING:
            return len(self._sessions.find_asked(session)) < session.quorum
        if session.state == SessionState.CHOOSING:
            terms = read_terms(session.terms)
            known, params = protocol(terms.protocol.name), check_terms(terms)
            n_left = len(terms.layout.slots) - len(stopped)
            return n_left < known.quorum(params, terms.layout)
        return True
