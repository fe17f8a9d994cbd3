"""Queries on tasks and contributions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple, cast

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.models import Contribution, Session, Task, UTCDateTime


class OpenTask(NamedTuple):
    """What a slot is asked now."""

    session_id: str
    round: int
    attempt: int
    slot: str
    digest: str
    sent_at: datetime | None


class AskedOf(NamedTuple):
    """The digest of what a slot is asked, and whether it has answered."""

    digest: str
    is_answered: bool


class ContributionRepository:
    """Tasks and contributions in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def asked(
        self, session_id: str, round_: int, attempt: int, slot: str
    ) -> AskedOf | None:
        """Return what a slot is asked in an attempt."""
        asked = {
            "of_session_id": session_id,
            "of_round": round_,
            "of_attempt": attempt,
            "of_slot": slot,
        }
        found = self._transaction.execute(_ASKED, asked).first()
        return None if found is None else AskedOf(*found)

    def contribution(
        self, session_id: str, round_: int, attempt: int, slot: str
    ) -> Contribution | None:
        """Return what a slot answered in an attempt."""
        return self._transaction.get(Contribution, (session_id, round_, attempt, slot))

    def is_complete(self, session_id: str) -> bool:
        """Return whether a session's open attempt has an answer to every task."""
        return bool(self._transaction.scalar(_IS_COMPLETE, {"session_id": session_id}))

    def unanswered(self, session: Session) -> dict[str, OpenTask]:
        """Return, by slot, the tasks of the open attempt that have no answer yet."""
        found = self._transaction.execute(_UNANSWERED, _open_attempt(session))
        return {row.slot: OpenTask(*row) for row in found}

    def answers(self, session: Session) -> dict[str, Contribution]:
        """Return, by slot, the answers to the open attempt."""
        found = self._transaction.scalars(_ANSWERS, _open_attempt(session))
        return {answer.slot: answer for answer in found}

    def add_all(self, contributions: Iterable[Contribution]) -> None:
        """Store contributions."""
        self._transaction.add_all(contributions)
        self._transaction.flush()

    def mark_sent(self, tasks: Sequence[OpenTask], now: datetime) -> list[OpenTask]:
        """Remember that tasks of one attempt are handed out; return those that were not."""
        first = tasks[0]
        marked = self._transaction.scalars(
            _MARK_SENT,
            {
                "of_session_id": first.session_id,
                "of_round": first.round,
                "of_attempt": first.attempt,
                "slots": [task.slot for task in tasks],
                "now": now,
            },
        )
        slots = set(marked)
        return [task for task in tasks if task.slot in slots]

    def digests(
        self, table: type[Task | Contribution], session: Session
    ) -> dict[str, str]:
        """Return slot and digest of all tasks or contributions of the open attempt."""
        rows = self._transaction.execute(_DIGESTS[table], _open_attempt(session))
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


def _open_attempt(session: Session) -> dict[str, object]:
    return {
        "of_session_id": session.id,
        "of_round": session.round,
        "of_attempt": session.attempt,
    }


def _of_attempt(table: type[Task | Contribution]) -> sa.ColumnElement[bool]:
    return sa.and_(
        table.session_id == sa.bindparam("of_session_id"),
        table.round == sa.bindparam("of_round"),
        table.attempt == sa.bindparam("of_attempt"),
    )


# Queries of most requests, written once: to write one costs more than to send it.
_ANSWERS = sa.select(Contribution).where(_of_attempt(Contribution))
_DIGESTS = {
    table: sa.select(table.slot, table.digest).where(_of_attempt(table))
    for table in (Task, Contribution)
}
_TASKS = cast(sa.Table, Task.__table__)
_UNANSWERED = sa.select(*(_TASKS.c[name] for name in OpenTask._fields)).where(
    _of_attempt(Task),
    Task.slot.not_in(sa.select(Contribution.slot).where(_of_attempt(Contribution))),
)
_ASKED = sa.select(
    Task.digest,
    sa.exists().where(
        _of_attempt(Contribution), Contribution.slot == sa.bindparam("of_slot")
    ),
).where(_of_attempt(Task), Task.slot == sa.bindparam("of_slot"))
_MARK_SENT = (
    sa.update(_TASKS)
    .where(
        _of_attempt(Task),
        Task.slot.in_(sa.bindparam("slots", expanding=True)),
        Task.sent_at.is_(None),
    )
    .values(sent_at=sa.bindparam("now", type_=UTCDateTime()))
    .returning(Task.slot)
)
_IS_COMPLETE = sa.select(
    sa.exists().where(Session.id == sa.bindparam("session_id"), ALL_ANSWERED)
)
