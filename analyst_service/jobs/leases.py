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

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.models import Session
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


class LeaseRepository:
    """Leases in one transaction.

    Parameters
    ----------
    unit : Unit
    seconds : float
        How long a lease holds without being renewed.
    """

    def __init__(self, transaction: Transaction, seconds: float) -> None:
        self._transaction = transaction
        self._span = timedelta(seconds=seconds)

    def any_free(self, now: datetime) -> bool:
        """Return whether :meth:`take` would find a step; takes no lock."""
        free = sa.select(Session.id).where(self._is_free(now)).limit(1)
        return self._transaction.scalar(free) is not None

    def take(self, now: datetime) -> Lease | None:
        """Take the step that waits longest; None if there is none.

        Rows that another driver is about to take are skipped instead of waited for.
        """
        session = self._transaction.scalar(
            sa.select(Session)
            .where(self._is_free(now))
            .order_by(Session.changed_at, Session.id)
            .limit(1)
            .with_for_update(skip_locked=True)
        )
        if session is None:
            return None
        token = secrets.token_hex(16)
        begun = self._transaction.scalar(
            sa.update(Session)
            .where(Session.id == session.id, self._is_free(now))
            .values(
                lease_token=token,
                lease_until=now + self._span,
                step_attempts=Session.step_attempts + 1,
            )
            .returning(Session.step_attempts)
            .execution_options(synchronize_session=False)
        )
        return None if begun is None else Lease(session, token, begun)

    def renew(self, lease: Lease, now: datetime) -> bool:
        """Let a lease hold longer; False if another driver has the step now."""
        return self._change(lease, lease_until=now + self._span)

    def release(self, lease: Lease, until: datetime, *, counts: bool) -> None:
        """Give a step back, to be taken again from a time on.

        Parameters
        ----------
        lease : Lease
        until : datetime
        counts : bool
            Whether this attempt counts against the session.
        """
        begun = lease.begun if counts else lease.begun - 1
        self._change(lease, lease_token=None, lease_until=until, step_attempts=begun)

    def _change(self, lease: Lease, **values: object) -> bool:
        changed = self._transaction.execute(
            sa.update(Session)
            .where(
                Session.id == lease.session.id,
                Session.lease_token == lease.token,
                Session.state == SessionState.STEPPING.value,
            )
            .values(**values)
            .returning(Session.id)
            .execution_options(synchronize_session=False)
        )
        return changed.first() is not None

    def _is_free(self, now: datetime) -> sa.ColumnElement[bool]:
        """Return the condition under which a step may be taken.

        A lease that ends later than any driver would set it was set before the clock
        was put back: nobody renews it.
        """
        return sa.and_(
            Session.state == SessionState.STEPPING.value,
            sa.or_(
                Session.lease_until.is_(None),
                Session.lease_until <= now,
                Session.lease_until > now + 2 * self._span,
            ),
        )
