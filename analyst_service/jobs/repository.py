"""Queries of the driver."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Session as Unit

from analyst_service.models import Contribution, Session, Task
from analyst_service.sessions.states import State


class JobRepository:
    """What there is to do, in one transaction."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    def complete(self, now: datetime, *, lock: bool = False) -> list[Session]:
        """Return collecting sessions with all answers, or a quorum at the deadline."""
        answers, tasks = _count(Contribution), _count(Task)
        is_complete = answers >= tasks
        has_quorum = sa.and_(Session.deadline <= now, answers >= Session.quorum)
        return self._sessions(
            sa.and_(
                Session.state == State.COLLECTING.value,
                sa.or_(is_complete, has_quorum),
            ),
            lock=lock,
        )

    def overdue(self, now: datetime, *, lock: bool = False) -> list[Session]:
        """Return recruiting and collecting sessions whose deadline has passed."""
        waiting = (State.RECRUITING.value, State.COLLECTING.value)
        return self._sessions(
            sa.and_(Session.state.in_(waiting), Session.deadline <= now), lock=lock
        )

    def add_tasks(self, tasks: list[Task]) -> None:
        """Store the tasks of an attempt."""
        self._unit.add_all(tasks)
        self._unit.flush()

    def _sessions(
        self, condition: sa.ColumnElement[bool], *, lock: bool
    ) -> list[Session]:
        """Return sessions; with a lock, those that nobody else is changing.

        Drivers that waited for each other's rows could wait in a circle.
        """
        query = sa.select(Session).where(condition)
        if lock:
            query = query.with_for_update(skip_locked=True)
        return list(self._unit.scalars(query))


def _count(table: type[Task | Contribution]) -> sa.ScalarSelect[int]:
    """Return the number of a session's rows in its open attempt."""
    return (
        sa.select(sa.func.count())
        .select_from(table)
        .where(
            table.session_id == Session.id,
            table.round == Session.round,
            table.attempt == Session.attempt,
        )
        .correlate(Session)
        .scalar_subquery()
    )
