"""Queries on sessions and their slots."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import cache
from hashlib import sha256
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.storage.models import Contribution, Member, Session, Task, table
from analyst_service.transactions.audit import Audit, hold
from analyst_service.transactions.outbox import Outbox, SessionMove
from clustering_protocols.wire.states import OVER, Event, SessionState, after

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
