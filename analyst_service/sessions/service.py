"""What may be done with sessions, and by whom."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

from sqlalchemy.orm import Session as Transaction

from analyst_service.auth.service import Caller, Role
from analyst_service.clock import Clock
from analyst_service.sessions.quotas import Quotas
from analyst_service.sessions.repository import SessionRepository
from analyst_service.storage.database import Database
from analyst_service.storage.models import AuditLine, Member, Session
from analyst_service.transactions.audit import Audit
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import (
    CoterieError,
    InvalidParameters,
    NotFound,
    NotReady,
    PartyStopped,
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
)
from clustering_protocols.wire.stop_reasons import describe_stop

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
