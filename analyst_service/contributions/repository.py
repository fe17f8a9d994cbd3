"""Queries on tasks and contributions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.storage.models import (
    Contribution,
    Session,
    Task,
    UTCDateTime,
    table,
)


class SlotAttempt(NamedTuple):
    """A slot's place in an attempt: the key of its task and of its answer."""

    session_id: str
    round: int
    attempt: int
    slot: str


class OpenTask(NamedTuple):
    """What a slot is asked now."""

    session_id: str
    round: int
    attempt: int
    slot: str
    digest: str
    sent_at: datetime | None

    @property
    def slot_attempt(self) -> SlotAttempt:
        """Return where it stands."""
        return SlotAttempt(*self[:4])


class SlotTask(NamedTuple):
    """The digest of what a slot is asked, and whether it has answered."""

    digest: str
    is_answered: bool


class ContributionRepository:
    """Tasks and contributions in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def find_tasks(self, session_ids: Collection[str]) -> dict[SlotAttempt, SlotTask]:
        """Return what is asked in the open attempts of sessions, and where."""
        found = self._transaction.execute(_ASKED, {"session_ids": list(session_ids)})
        return {SlotAttempt(*row[:4]): SlotTask(row[4], row[5]) for row in found}

    def contribution(self, where: SlotAttempt) -> Contribution | None:
        """Return what a slot answered in an attempt."""
        return self._transaction.get(Contribution, where)

    def any_complete(self, session_ids: Collection[str]) -> bool:
        """Return whether an open attempt of these has an answer to every task."""
        here = {"session_ids": list(session_ids)}
        return bool(self._transaction.scalar(_ANY_COMPLETE, here))

    def find_unanswered(
        self, session_ids: Collection[str]
    ) -> dict[tuple[str, str], OpenTask]:
        """Return, by session and slot, the tasks of open attempts without an answer."""
        here = {"session_ids": list(session_ids)}
        found = [OpenTask(*row) for row in self._transaction.execute(_UNANSWERED, here)]
        return {(task.session_id, task.slot): task for task in found}

    def answers(self, session_ids: Collection[str]) -> dict[SlotAttempt, Contribution]:
        """Return the answers to the open attempts of sessions."""
        found = self._transaction.scalars(_ANSWERS, {"session_ids": list(session_ids)})
        return {
            SlotAttempt(each.session_id, each.round, each.attempt, each.slot): each
            for each in found
        }

    def add_all(self, contributions: Iterable[Contribution]) -> None:
        """Store contributions."""
        self._transaction.add_all(contributions)
        self._transaction.flush()

    def mark_sent(self, tasks: Collection[OpenTask], now: datetime) -> list[OpenTask]:
        """Remember that tasks are handed out; return those that were not so far."""
        places = {task.slot_attempt: task for task in tasks}
        marked = self._transaction.execute(
            _MARK_SENT, {"places": list(places), "now": now}
        )
        return [places[SlotAttempt(*row)] for row in marked]

    def digests(
        self, kind: type[Task | Contribution], session: Session
    ) -> dict[str, str]:
        """Return slot and digest of all tasks or contributions of the open attempt."""
        rows = self._transaction.execute(_DIGESTS[kind], _open_attempt(session))
        return dict(rows.all())


_SESSIONS, _TASKS, _CONTRIBUTIONS = map(table, (Session, Task, Contribution))
_TABLES: Mapping[type[Task | Contribution], sa.Table] = {
    Task: _TASKS,
    Contribution: _CONTRIBUTIONS,
}


def _is_open(rows: sa.Table) -> sa.ColumnElement[bool]:
    """Return whether a row is of its session's open attempt."""
    return sa.and_(
        rows.c.session_id == _SESSIONS.c.id,
        rows.c.round == _SESSIONS.c.round,
        rows.c.attempt == _SESSIONS.c.attempt,
    )


def _count(rows: sa.Table) -> sa.ScalarSelect[int]:
    """Return the number of a session's rows in its open attempt."""
    counted = sa.select(sa.func.count()).select_from(rows).where(_is_open(rows))
    return counted.correlate(_SESSIONS).scalar_subquery()


# conditions on a session
N_ANSWERS = _count(_CONTRIBUTIONS)
ALL_ANSWERED = _count(_TASKS) <= N_ANSWERS


def _open_attempt(session: Session) -> dict[str, object]:
    return {
        "of_session_id": session.id,
        "of_round": session.round,
        "of_attempt": session.attempt,
    }


def _of_attempt(rows: sa.Table) -> sa.ColumnElement[bool]:
    return sa.and_(
        rows.c.session_id == sa.bindparam("of_session_id"),
        rows.c.round == sa.bindparam("of_round"),
        rows.c.attempt == sa.bindparam("of_attempt"),
    )


# Queries of most requests, written once: to write one costs more than to send it.
_HERE = _SESSIONS.c.id.in_(sa.bindparam("session_ids", expanding=True))
_WHERE = tuple(_TASKS.c[name] for name in SlotAttempt._fields)
_IS_ANSWERED = (
    sa.exists()
    .where(_is_open(_CONTRIBUTIONS), _CONTRIBUTIONS.c.slot == _TASKS.c.slot)
    .correlate(_SESSIONS, _TASKS)
)
_ANSWERS = (
    sa.select(Contribution).join(_SESSIONS, _is_open(_CONTRIBUTIONS)).where(_HERE)
)
_DIGESTS = {
    kind: sa.select(rows.c.slot, rows.c.digest).where(_of_attempt(rows))
    for kind, rows in _TABLES.items()
}
_UNANSWERED = (
    sa.select(*(_TASKS.c[name] for name in OpenTask._fields))
    .join(_SESSIONS, _is_open(_TASKS))
    .where(_HERE, ~_IS_ANSWERED)
)
_ASKED = (
    sa.select(*_WHERE, _TASKS.c.digest, _IS_ANSWERED)
    .join(_SESSIONS, _is_open(_TASKS))
    .where(_HERE)
)
_MARK_SENT = (
    sa.update(_TASKS)
    .where(
        sa.tuple_(*_WHERE).in_(sa.bindparam("places", expanding=True)),
        _TASKS.c.sent_at.is_(None),
    )
    .values(sent_at=sa.bindparam("now", type_=UTCDateTime()))
    .returning(*_WHERE)
)
_ANY_COMPLETE = sa.select(
    sa.exists(sa.select(_SESSIONS.c.id).where(_HERE, ALL_ANSWERED))
)
