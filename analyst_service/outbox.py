"""The outbox: notices, written in the same transaction as the events that they announce.

So no notice is lost, and none announces a rolled-back event. They are sent later, by
:mod:`analyst_service.notices`. A receiver who is awaited has at most two pending notices,
which are deleted when the session moves: if its program answers in time, no mail is sent.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.models import Notice, Receiver, Session
from clustering_protocols.wire.states import OVER, SessionState


class NoticeEvent(StrEnum):
    """The event that a notice announces."""

    ADDED = "added"
    TURN = "turn"
    AWAITED = "awaited"
    ENDED = "ended"


class NoticeState(StrEnum):
    """The state of a notice's delivery."""

    PENDING = "pending"
    SENT = "sent"
    GIVEN_UP = "given-up"


class SessionMove(NamedTuple):
    """The state of a session after a move."""

    id: str
    state: str
    round: int
    attempt: int
    changed_at: datetime
    deadline: datetime
    reason: str | None


GRACE = timedelta(minutes=1)
"""Time between a task and the notice of it; a running program answers sooner."""

LONG = 0.5
"""The fraction of the time until a deadline after which the wait counts as long."""


def write_notices(db: Transaction, move: SessionMove, now: datetime) -> None:
    """Write the notices about a session's move for all its receivers."""
    receivers = db.scalars(_RECEIVERS, {"session_id": move.id}).all()
    if not receivers:
        return
    # the extension of a deadline: the turn was announced already
    is_extension = move.changed_at < now
    outdated = [NoticeEvent.AWAITED] if is_extension else _WAITS
    db.execute(
        sa.delete(Notice)
        .where(
            Notice.session_id == move.id,
            Notice.state == NoticeState.PENDING.value,
            Notice.event.in_([event.value for event in outdated]),
        )
        .execution_options(synchronize_session=False)
    )
    for receiver in receivers:
        for event, due_at in _plan_notices(receiver.slot, move, now):
            if not (is_extension and event is NoticeEvent.TURN):
                _add_notice(db, receiver, move, event, now, due_at)


def write_first_notices(
    db: Transaction, receiver: Receiver, session: Session, now: datetime
) -> None:
    """Write the first notice to a new receiver, and those of the session's state."""
    move = SessionMove(*(getattr(session, name) for name in SessionMove._fields))
    _add_notice(db, receiver, move, NoticeEvent.ADDED, now, now)
    for event, due_at in _plan_notices(receiver.slot, move, now):
        _add_notice(db, receiver, move, event, now, due_at)


def _add_notice(
    db: Transaction,
    receiver: Receiver,
    move: SessionMove,
    event: NoticeEvent,
    now: datetime,
    due_at: datetime,
) -> None:
    notice = Notice(
        id=secrets.token_hex(16),
        receiver_id=receiver.id,
        session_id=move.id,
        event=event.value,
        session_state=move.state,
        round=move.round,
        attempt=move.attempt,
        reason=move.reason,
        happened_at=now,
        due_at=max(now, due_at),
        state=NoticeState.PENDING.value,
        attempts=0,
    )
    db.add(notice)
    db.flush()


def _plan_notices(
    slot: str | None, move: SessionMove, now: datetime
) -> Iterator[tuple[NoticeEvent, datetime]]:
    """Yield the events to announce and when; ``slot`` is None for a coordinator.

    Whether a slot is still awaited is checked when its notice is due.
    """
    state, is_party = SessionState(move.state), slot is not None
    if state in OVER:
        yield NoticeEvent.ENDED, now
    if state is (SessionState.COLLECTING if is_party else SessionState.CHOOSING):
        # a party's program answers within seconds; choosing needs a person in any case
        yield NoticeEvent.TURN, move.changed_at + (GRACE if is_party else timedelta())
    coordinators = {SessionState.RECRUITING, SessionState.CHOOSING}
    if state is SessionState.COLLECTING or (not is_party and state in coordinators):
        span = move.deadline - move.changed_at
        yield NoticeEvent.AWAITED, move.changed_at + LONG * span


_WAITS = (NoticeEvent.AWAITED, NoticeEvent.TURN)
_RECEIVERS = sa.select(Receiver).where(
    Receiver.session_id == sa.bindparam("session_id"), Receiver.address != ""
)
