"""Leases of steps: of several drivers one runs a step, and only its outcome counts.

A lease is a random token in the session's row, and a time until which it holds. The
driver that holds it renews it while the step runs; when it has run out, any driver may
take the step under a new token. The token is the fence: what follows from a step is
stored by an UPDATE that names it, so a driver that slept through the end of its lease
stores nothing.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.storage.models import Session, UTCDateTime, table
from clustering_protocols.wire.states import SessionState


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to step a session; ``session`` is as it was when the lease was taken."""

    session: Session
    token: str
    begun: int

    @property
    def name(self) -> str:
        """Return the id of the session."""
        return self.session.id


def times_of_lease(now: datetime, span: timedelta) -> dict[str, datetime]:
    """Return the times that :data:`IS_FREE` asks for.

    span: how long a lease holds without being renewed.
    """
    return {"now": now, "far": now + 2 * span}


class LeaseRepository:
    """Leases in one transaction.

    seconds: how long a lease holds without being renewed.
    """

    def __init__(self, transaction: Transaction, seconds: float) -> None:
        self._transaction = transaction
        self._span = timedelta(seconds=seconds)

    def take(self, now: datetime) -> Lease | None:
        """Take the step that waits longest; None if there is none.

        Rows that another driver is about to take are skipped instead of waited for.
        """
        free = times_of_lease(now, self._span)
        session = self._transaction.scalar(_NEXT, free)
        if session is None:
            return None
        token = secrets.token_hex(16)
        taken = {"of_id": session.id, "by": token, "until": now + self._span}
        begun = self._transaction.scalar(_TAKE, free | taken)
        return None if begun is None else Lease(session, token, begun)

    def renew(self, lease: Lease, now: datetime) -> bool:
        """Let a lease hold longer; False if another driver has the step now."""
        return self._change(lease, lease_until=now + self._span)

    def release(self, lease: Lease, until: datetime, *, counts: bool) -> None:
        """Give a step back, to be taken again from a time on.

        counts: whether this attempt counts against the session.
        """
        begun = lease.begun if counts else lease.begun - 1
        self._change(lease, lease_token=None, lease_until=until, step_attempts=begun)

    def _change(self, lease: Lease, **values: object) -> bool:
        held = {"of_id": lease.session.id, "by": lease.token}
        changes = {f"new_{name}": value for name, value in values.items()}
        changed = self._transaction.execute(_build_update(*values), held | changes)
        return changed.first() is not None


# Statements of every step, written once: to write one costs more than to send it.
_SESSIONS = table(Session)
_NOW = sa.bindparam("now", type_=UTCDateTime())
# A lease that ends later than any driver would set it was set before the clock was put
# back: nobody renews it.
IS_FREE = sa.and_(
    _SESSIONS.c.state == SessionState.STEPPING.value,
    sa.or_(
        _SESSIONS.c.lease_until.is_(None),
        _SESSIONS.c.lease_until <= _NOW,
        _SESSIONS.c.lease_until > sa.bindparam("far", type_=UTCDateTime()),
    ),
)
_NEXT = (
    sa.select(Session)
    .where(IS_FREE)
    .order_by(_SESSIONS.c.changed_at, _SESSIONS.c.id)
    .limit(1)
    .with_for_update(skip_locked=True)
)
_TAKE = (
    sa.update(_SESSIONS)
    .where(_SESSIONS.c.id == sa.bindparam("of_id"), IS_FREE)
    .values(
        lease_token=sa.bindparam("by"),
        lease_until=sa.bindparam("until"),
        # to take over a lease that holds is no attempt: its driver lives
        step_attempts=_SESSIONS.c.step_attempts
        + sa.case((_SESSIONS.c.lease_until > _NOW, 0), else_=1),
    )
    .returning(_SESSIONS.c.step_attempts)
)


@cache
def _build_update(*names: str) -> sa.UpdateBase:
    """Return what writes these columns for anyone who holds the lease."""
    return (
        sa.update(_SESSIONS)
        .where(
            _SESSIONS.c.id == sa.bindparam("of_id"),
            _SESSIONS.c.lease_token == sa.bindparam("by"),
            _SESSIONS.c.state == SessionState.STEPPING.value,
        )
        .values({name: sa.bindparam(f"new_{name}") for name in names})
        .returning(_SESSIONS.c.id)
    )
