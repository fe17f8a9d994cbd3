"""The outbox: notices written in the transaction of what they tell.

So none is lost, and none tells what did not happen. They are sent later, by
:mod:`analyst_service.notices.sender`. Of somebody who is awaited at most two wait here, and
they go as soon as the session moves: a program that answers in time makes nobody be told.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Self

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.storage.models import Notice, Receiver, Session
from clustering_protocols.wire.states import OVER, SessionState


class NoticeEvent(StrEnum):
    """What a receiver is told."""

    ADDED = "added"
    TURN = "turn"
    AWAITED = "awaited"
    ENDED = "ended"


class NoticeState(StrEnum):
    """What has become of a notice."""

    PENDING = "pending"
    SENT = "sent"
    GIVEN_UP = "given-up"


@dataclass(frozen=True, slots=True)
class SessionMove:
    """Where a session stands behind a move: what notices are about."""

    session_id: str
    state: SessionState
    round: int
    attempt: int
    since: datetime
    deadline: datetime
    reason: str | None = None

    @classmethod
    def of(cls, session: Session) -> Self:
        """Return where a session stands as it is now."""
        return cls(
            session.id,
            SessionState(session.state),
            session.round,
            session.attempt,
            session.changed_at,
            session.deadline,
            session.reason,
        )


GRACE = timedelta(minutes=1)
"""For how long a task waits before its party is told: a program that runs has answered."""

LONG = 0.5
"""The part of a deadline after which it has been waited for long."""


class Outbox:
    """Notices in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def note(self, standing: SessionMove, now: datetime) -> None:
        """Write what the receivers of a session are to be told of a move."""
        here = {"session_id": standing.session_id}
        receivers = self._transaction.scalars(_RECEIVERS, here).all()
        if not receivers:
            return
        # where the same wait was only made longer, whose turn it is has been told
        is_longer = standing.since < now
        overtaken = _WAITS if is_longer else (*_WAITS, NoticeEvent.TURN)
        self._transaction.execute(_overtaken(standing.session_id, overtaken))
        for receiver in receivers:
            self._write(
                receiver, standing, now, but=NoticeEvent.TURN if is_longer else None
            )

    def welcome(self, receiver: Receiver, standing: SessionMove, now: datetime) -> None:
        """Write that a receiver was added, and what it would have been told by now."""
        self._put(receiver, standing, NoticeEvent.ADDED, now, now)
        self._write(receiver, standing, now)

    def _write(
        self,
        receiver: Receiver,
        standing: SessionMove,
        now: datetime,
        but: NoticeEvent | None = None,
    ) -> None:
        for event, due_at in _due(receiver.slot, standing, now):
            if event is not but:
                self._put(receiver, standing, event, now, max(now, due_at))

    def _put(
        self,
        receiver: Receiver,
        standing: SessionMove,
        event: NoticeEvent,
        now: datetime,
        due_at: datetime,
    ) -> None:
        notice = Notice(
            id=secrets.token_hex(16),
            receiver_id=receiver.id,
            session_id=standing.session_id,
            event=event.value,
            session_state=standing.state.value,
            round=standing.round,
            attempt=standing.attempt,
            reason=standing.reason,
            happened_at=now,
            due_at=due_at,
            state=NoticeState.PENDING.value,
            attempts=0,
        )
        self._transaction.add(notice)
        self._transaction.flush()


def _due(
    slot: str | None, standing: SessionMove, now: datetime
) -> Iterator[tuple[NoticeEvent, datetime]]:
    """Yield what somebody is to be told, and when; ``slot`` is None for a coordinator.

    Whether a slot is awaited is looked up when its notice is due.
    """
    state = standing.state
    is_party = slot is not None
    if state in OVER:
        yield NoticeEvent.ENDED, now
    if state is (SessionState.COLLECTING if is_party else SessionState.CHOOSING):
        # a program answers within seconds; to choose is for a person in any case
        yield NoticeEvent.TURN, standing.since + (GRACE if is_party else timedelta())
    coordinators = {SessionState.RECRUITING, SessionState.CHOOSING}
    if state is SessionState.COLLECTING or (not is_party and state in coordinators):
        span = standing.deadline - standing.since
        yield NoticeEvent.AWAITED, standing.since + LONG * span


_RECEIVERS = sa.select(Receiver).where(
    Receiver.session_id == sa.bindparam("session_id"), Receiver.address != ""
)
_WAITS = (NoticeEvent.AWAITED,)


def _overtaken(session_id: str, events: Iterable[NoticeEvent]) -> sa.Delete:
    """Return what forgets notices of these events that were not sent yet."""
    return (
        sa.delete(Notice)
        .where(
            Notice.session_id == session_id,
            Notice.state == NoticeState.PENDING.value,
            Notice.event.in_([event.value for event in events]),
        )
        .execution_options(synchronize_session=False)
    )
