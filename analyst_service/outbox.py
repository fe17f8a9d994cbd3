"""The outbox of notices: each is written in the transaction of the event it announces.

Therefore no notice is lost, and none announces an event that was rolled back. Notices
are sent later, by :mod:`analyst_service.notices`. A receiver that the session is
waiting for has at most two pending notices. Pending notices are deleted when the
session's state changes, so no mail is sent if the receiver's program answers in time.
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
    """The delivery state of a notice."""

    PENDING = "pending"
    SENT = "sent"
    GIVEN_UP = "given-up"


class SessionChange(NamedTuple):
    """The state of a session right after a change, with what its notices need."""

    id: str
    state: str
    round: int
    attempt: int
    changed_at: datetime
    deadline: datetime
    reason: str | None


GRACE = timedelta(minutes=1)
"""The time between a task and the notice about it. A running program answers sooner."""

REMINDER_FRACTION = 0.5
"""The fraction of the time until the deadline after which a reminder is sent."""


def write_notices(db: Transaction, change: SessionChange, now: datetime) -> None:
    """Write the notices that announce a session's change of state to its receivers."""
    receivers = db.scalars(_RECEIVERS, {"session_id": change.id}).all()
    if not receivers:
        return
    # If only the deadline was extended, the turn has already been announced.
    is_extension = change.changed_at < now
    outdated = [NoticeEvent.AWAITED] if is_extension else _WAITS
    db.execute(
        sa.delete(Notice)
        .where(
            Notice.session_id == change.id,
            Notice.state == NoticeState.PENDING.value,
            Notice.event.in_([event.value for event in outdated]),
        )
        .execution_options(synchronize_session=False)
    )
    for receiver in receivers:
        for event, due_at in _plan_notices(receiver.slot, change, now):
            if not (is_extension and event is NoticeEvent.TURN):
                _add_notice(db, receiver, change, event, now, due_at)


def write_first_notices(
    db: Transaction, receiver: Receiver, session: Session, now: datetime
) -> None:
    """Write a new receiver's first notice, and those due in the session's current state."""
    change = SessionChange(*(getattr(session, name) for name in SessionChange._fields))
    _add_notice(db, receiver, change, NoticeEvent.ADDED, now, now)
    for event, due_at in _plan_notices(receiver.slot, change, now):
        _add_notice(db, receiver, change, event, now, due_at)


def _add_notice(
    db: Transaction,
    receiver: Receiver,
    change: SessionChange,
    event: NoticeEvent,
    now: datetime,
    due_at: datetime,
) -> None:
    notice = Notice(
        id=secrets.token_hex(16),
        receiver_id=receiver.id,
        session_id=change.id,
        event=event.value,
        session_state=change.state,
        round=change.round,
        attempt=change.attempt,
        reason=change.reason,
        happened_at=now,
        due_at=max(now, due_at),
        state=NoticeState.PENDING.value,
        attempts=0,
    )
    db.add(notice)
    db.flush()


def _plan_notices(
    slot: str | None, change: SessionChange, now: datetime
) -> Iterator[tuple[NoticeEvent, datetime]]:
    """Yield the events to announce and when; ``slot`` is None for a coordinator.

    Whether the session is still waiting for the slot is checked when the notice is due.
    """
    state, is_party = SessionState(change.state), slot is not None
    if state in OVER:
        yield NoticeEvent.ENDED, now
    if state is (SessionState.COLLECTING if is_party else SessionState.CHOOSING):
        # A party's program usually answers within seconds, but a person has to choose.
        delay = GRACE if is_party else timedelta()
        yield NoticeEvent.TURN, change.changed_at + delay
    coordinators = {SessionState.RECRUITING, SessionState.CHOOSING}
    if state is SessionState.COLLECTING or (not is_party and state in coordinators):
        span = change.deadline - change.changed_at
        yield NoticeEvent.AWAITED, change.changed_at + REMINDER_FRACTION * span


_WAITS = (NoticeEvent.AWAITED, NoticeEvent.TURN)
_RECEIVERS = sa.select(Receiver).where(
    Receiver.session_id == sa.bindparam("session_id"), Receiver.address != ""
)
