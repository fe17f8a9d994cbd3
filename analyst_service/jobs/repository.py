"""Queries of the driver."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.contributions.repository import ALL_ANSWERED, N_ANSWERS
from analyst_service.jobs.leases import IS_FREE, times_of_lease
from analyst_service.storage.models import Session, Task, UTCDateTime, table
from clustering_protocols.wire.states import SessionState


class RoundPosition(NamedTuple):
    """Where a session stands; any move changes it."""

    state: str
    round: int
    attempt: int

    @property
    def has_news(self) -> bool:
        """Return whether those who wait have something to do, or nothing ever more."""
        return self.state not in {
            SessionState.RECRUITING.value,
            SessionState.STEPPING.value,
            SessionState.CHOOSING.value,
        }


class JobRepository:
    """What there is to do, in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def has_rounds_to_close(self, now: datetime) -> bool:
        """Return whether there is a complete or an overdue session; takes no lock."""
        return bool(self._transaction.scalar(_TO_CLOSE, {"now": now}))

    def has_work(self, now: datetime, span: timedelta) -> bool:
        """Return whether there is such a session, or a step to take; takes no lock.

        span: how long a lease holds without being renewed.
        """
        return bool(self._transaction.scalar(_HAS_WORK, times_of_lease(now, span)))

    def to_close(self, now: datetime) -> list[tuple[Session, bool]]:
        """Return, locked, which sessions wait no longer, and whether for good reason.

        That is the case where a round has all its answers, or a quorum at the deadline;
        the others wait still although their deadline has passed. Sessions that somebody
        else is changing are left out: drivers that waited for each other's rows could
        wait in a circle.
        """
        found = self._transaction.execute(_CLOSING, {"now": now}).all()
        late = [session.id for session, is_complete in found if not is_complete]
        answered = self._complete(late, now) if late else set()
        return [
            (session, is_complete or session.id in answered)
            for session, is_complete in found
        ]

    def _complete(self, locked: list[str], now: datetime) -> set[str]:
        """Return which sessions have all answers, now that they are locked.

        PostgreSQL counts answers as of the beginning of a query, and locks as it ends:
        the last one may have been stored in between.
        """
        here = {"session_ids": locked, "now": now}
        return set(self._transaction.scalars(_COMPLETE, here))

    def standings(self, sessions: Collection[str]) -> dict[str, RoundPosition]:
        """Return where these sessions stand; takes no lock."""
        found = self._transaction.execute(_STANDINGS, {"session_ids": list(sessions)})
        return {row[0]: RoundPosition(*row[1:]) for row in found}

    def add_tasks(self, tasks: Sequence[Mapping[str, object]]) -> None:
        """Store the tasks of an attempt, given their columns."""
        self._transaction.execute(_TASKS, tasks)


# of the table, and not of the class: nothing of it is read back
_TASKS = sa.insert(table(Task))
_SESSIONS = table(Session)
_STANDINGS = sa.select(*_SESSIONS.c["id", "state", "round", "attempt"]).where(
    _SESSIONS.c.id.in_(sa.bindparam("session_ids", expanding=True))
)
_NOW = sa.bindparam("now", type_=UTCDateTime())
_IS_COMPLETE = sa.and_(
    _SESSIONS.c.state == SessionState.COLLECTING.value,
    sa.or_(
        ALL_ANSWERED,
        sa.and_(_SESSIONS.c.deadline <= _NOW, _SESSIONS.c.quorum <= N_ANSWERS),
    ),
)
_IS_OVERDUE = sa.and_(
    _SESSIONS.c.state.in_(
        (
            SessionState.RECRUITING.value,
            SessionState.COLLECTING.value,
            SessionState.CHOOSING.value,
        )
    ),
    _SESSIONS.c.deadline <= _NOW,
)
_WAITS_NO_LONGER = sa.or_(_IS_COMPLETE, _IS_OVERDUE)
_ANY_WAITS_NO_LONGER, _ANY_IS_FREE = (
    sa.exists(sa.select(_SESSIONS.c.id).where(each))
    for each in (_WAITS_NO_LONGER, IS_FREE)
)
_TO_CLOSE = sa.select(_ANY_WAITS_NO_LONGER)
_HAS_WORK = sa.select(sa.or_(_ANY_IS_FREE, _ANY_WAITS_NO_LONGER))
_COMPLETE = sa.select(_SESSIONS.c.id).where(
    _SESSIONS.c.id.in_(sa.bindparam("session_ids", expanding=True)), _IS_COMPLETE
)
_CLOSING = (
    sa.select(Session, _IS_COMPLETE.label("is_complete"))
    .where(_WAITS_NO_LONGER)
    .with_for_update(skip_locked=True, of=Session)
)
