"""Queries on tasks and contributions."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.models import Contribution, Session, Task


class ContributionRepository:
    """Tasks and contributions in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def task(
        self, session_id: str, round_: int, attempt: int, slot: str
    ) -> Task | None:
        """Return what a slot is asked in an attempt."""
        return self._transaction.get(Task, (session_id, round_, attempt, slot))

    def contribution(
        self, session_id: str, round_: int, attempt: int, slot: str
    ) -> Contribution | None:
        """Return what a slot answered in an attempt."""
        return self._transaction.get(Contribution, (session_id, round_, attempt, slot))

    def is_complete(self, session_id: str) -> bool:
        """Return whether a session's open attempt has an answer to every task."""
        return bool(self._transaction.scalar(_IS_COMPLETE, {"session_id": session_id}))

    def add(self, contribution: Contribution) -> None:
        """Store a contribution."""
        self._transaction.add(contribution)
        self._transaction.flush()

    def mark_sent(self, task: Task, now: datetime) -> bool:
        """Remember that a task was handed out; False if it was before."""
        marked = self._transaction.execute(
            sa.update(Task)
            .where(
                Task.session_id == task.session_id,
                Task.round == task.round,
                Task.attempt == task.attempt,
                Task.slot == task.slot,
                Task.sent_at.is_(None),
            )
            .values(sent_at=now)
            .returning(Task.slot)
            .execution_options(synchronize_session=False)
        )
        return marked.first() is not None

    def digests(
        self, table: type[Task | Contribution], session: Session
    ) -> dict[str, str]:
        """Return slot and digest of all tasks or contributions of the open attempt."""
        rows = self._transaction.execute(
            sa.select(table.slot, table.digest).where(
                table.session_id == session.id,
                table.round == session.round,
                table.attempt == session.attempt,
            )
        )
        return dict(rows.all())


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


# conditions on a session
N_ANSWERS = _count(Contribution)
ALL_ANSWERED = _count(Task) <= N_ANSWERS

_IS_COMPLETE = sa.select(
    sa.exists().where(Session.id == sa.bindparam("session_id"), ALL_ANSWERED)
)
