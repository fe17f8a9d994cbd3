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

    def stepping(self) -> list[Session]:
        """Return sessions whose step has to run, the longest waiting first."""
        query = sa.select(Session).where(Session.state == State.STEPPING.value)
        return list(self._unit.scalars(query.order_by(Session.changed_at)))

    def complete(self, now: datetime) -> list[Session]:
        """Return collecting sessions with all answers, or a quorum at the deadline."""
        answers, tasks = _count(Contribution), _count(Task)
        is_complete = answers >= tasks
        has_quorum = sa.and_(Session.deadline <= now, answers >= Session.quorum)
        query = sa.select(Session).where(
            Session.state == State.COLLECTING.value, sa.or_(is_complete, has_quorum)
        )
        return list(self._unit.scalars(query))

    def overdue(self, now: datetime) -> list[Session]:
        """Return recruiting and collecting sessions whose deadline has passed."""
        waiting = (State.RECRUITING.value, State.COLLECTING.value)
        query = sa.select(Session).where(
            Session.state.in_(waiting), Session.deadline <= now
        )
        return list(self._unit.scalars(query))

    def add_tasks(self, tasks: list[Task]) -> None:
        """Store the tasks of an attempt."""
        self._unit.add_all(tasks)
        self._unit.flush()


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
