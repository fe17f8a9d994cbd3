"""Queries on receivers, and the leases of their notices."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.orm import Session as Transaction

from analyst_service.storage.models import Credential, Notice, Receiver, Session
from analyst_service.transactions.outbox import NoticeEvent, NoticeState

_LEASE = timedelta(minutes=2)  # longer than any delivery takes
_KEPT = timedelta(
    days=7
)  # after the end of a session: who is told may look how it went
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)

_IS_PENDING = Notice.state == NoticeState.PENDING.value


@dataclass(frozen=True, slots=True)
class LeasedNotice:
    """A notice under a lease, and whom it is for."""

    notice: Notice
    receiver: Receiver


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """How telling a receiver went."""

    sent: int
    given_up: int
    retrying: int
    failure: str | None


class NoticeRepository:
    """Receivers and notices in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    # Receivers

    def add(self, receiver: Receiver) -> None:
        """Store a receiver."""
        self._transaction.add(receiver)
        self._transaction.flush()

    def of_place(self, session_id: str, slot: str | None) -> list[Receiver]:
        """Return whom a coordinator (no slot) or a party has ever named, in order."""
        query = sa.select(Receiver).where(
            Receiver.session_id == session_id,
            Receiver.slot.is_(None) if slot is None else Receiver.slot == slot,
        )
        ordered = query.order_by(Receiver.created_at, Receiver.id)
        return list(self._transaction.scalars(ordered))

    def added_today(self, credential_id: str, now: datetime) -> int:
        """Return how many receivers a credential has named within a day."""
        return self._count(
            Receiver.id,
            Receiver.credential_id == credential_id,
            Receiver.created_at > now - _DAY,
        )

    def forget(self, receiver: Receiver) -> None:
        """Forget an address and its notices; that there was one counts still."""
        receiver.address = ""
        self._transaction.execute(
            sa.delete(Notice).where(Notice.receiver_id == receiver.id)
        )
        self._transaction.flush()

    def tally(self, receiver: Receiver) -> DeliveryRecord:
        """Return how telling a receiver went so far."""
        own = Notice.receiver_id == receiver.id
        sent = self._count(Notice.id, own, Notice.state == NoticeState.SENT.value)
        lost = self._count(Notice.id, own, Notice.state == NoticeState.GIVEN_UP.value)
        again = self._count(Notice.id, own, _IS_PENDING, Notice.failure.is_not(None))
        last = (
            sa.select(Notice.failure)
            .where(own, Notice.state != NoticeState.SENT.value)
            .where(Notice.failure.is_not(None))
            .order_by(Notice.happened_at.desc())
            .limit(1)
        )
        return DeliveryRecord(sent, lost, again, self._transaction.scalar(last))

    # Leases

    def any_due(self, now: datetime) -> bool:
        """Return whether :meth:`take` would find a notice; takes no lock."""
        query = sa.select(Notice.id).where(_is_free(now)).limit(1)
        return self._transaction.scalar(query) is not None

    def take(self, now: datetime) -> LeasedNotice | None:
        """Take a notice that is due under a lease; None if there is none.

        New ones first: a receiver that does not answer holds up nobody but itself. Of
        equal times the name decides: 'added' comes before all others.
        """
        found = self._lock_next(now)
        while found is not None and not self._is_free_still(found.notice, now):
            found = self._lock_next(now)
        if found is None:
            return None
        notice = found.notice
        notice.lease_token = secrets.token_hex(16)
        notice.lease_until = now + _LEASE
        notice.attempts += 1
        self._transaction.flush()
        return found

    def _lock_next(self, now: datetime) -> LeasedNotice | None:
        """Return the next notice that is free; none whose receiver another one takes."""
        row = self._transaction.execute(
            sa.select(Notice, Receiver)
            .join(Receiver, Receiver.id == Notice.receiver_id)
            .where(_is_free(now))
            .order_by(Notice.attempts, Notice.due_at, Notice.event)
            .limit(1)
            .with_for_update(skip_locked=True, key_share=True)  # others may add notices
        ).first()
        return None if row is None else LeasedNotice(*row)

    def _is_free_still(self, notice: Notice, now: datetime) -> bool:
        """Return whether nobody took a notice, or its receiver, before it was locked.

        PostgreSQL looks for leases as they were when a query began, and locks as it ends:
        of two that query at once both found the notice free. A later query sees whatever
        was committed before the lock was had.
        """
        is_free = sa.select(Notice.id).where(Notice.id == notice.id, _is_free(now))
        return self._transaction.scalar(is_free) is not None

    def drop(self, notice: Notice) -> None:
        """Forget a notice that has nothing to tell any more."""
        self._transaction.delete(notice)
        self._transaction.flush()

    def settle(self, notice: Notice, **values: object) -> bool:
        """Note what became of a notice; False if the lease was lost."""
        settled = self._transaction.execute(
            sa.update(Notice)
            .where(Notice.id == notice.id, Notice.lease_token == notice.lease_token)
            .values({"lease_token": None, "lease_until": None} | values)
            .returning(Notice.id)
            .execution_options(synchronize_session=False)
        )
        return settled.first() is not None

    def sent_lately(self, receiver: Receiver, now: datetime) -> int:
        """Return how many notices a receiver got within an hour."""
        return self._count(
            Notice.id,
            Notice.receiver_id == receiver.id,
            Notice.state == NoticeState.SENT.value,
            Notice.settled_at > now - _HOUR,
        )

    def is_entitled(self, receiver: Receiver) -> bool:
        """Return whether anyone who named a receiver has not been shut out since."""
        named_by = self._transaction.get(Credential, receiver.credential_id)
        return named_by is not None and named_by.revoked_at is None

    # Ends

    def has_leftovers(self, now: datetime) -> bool:
        """Return whether :meth:`tidy` would remove anything; takes no lock."""
        query = sa.select(Receiver.id).where(_is_over(now)).limit(1)
        return self._transaction.scalar(query) is not None

    def tidy(self, now: datetime) -> None:
        """Remove the receivers of sessions that ended, once all are told."""
        self._transaction.execute(
            sa.delete(Receiver)
            .where(_is_over(now))
            .execution_options(synchronize_session=False)
        )

    def _count(
        self, column: orm.InstrumentedAttribute[str], *of: sa.ColumnElement[bool]
    ) -> int:
        query = sa.select(sa.func.count(column)).where(*of)
        return self._transaction.scalar(query) or 0


def _is_free(now: datetime) -> sa.ColumnElement[bool]:
    """Return the condition under which a notice may be taken.

    One at a time of each receiver: it hears things in their order, and one that hangs
    holds up one sender.
    """
    other = orm.aliased(Notice)
    under_way = sa.exists().where(
        other.receiver_id == Notice.receiver_id, ~_has_no_lease(other, now)
    )
    return sa.and_(_IS_PENDING, Notice.due_at <= now, ~under_way)


def _has_no_lease(
    notice: type[Notice] | orm.util.AliasedClass[Notice], now: datetime
) -> sa.ColumnElement[bool]:
    """Return whether nobody is sending a notice.

    A lease that ends later than any sender would set it was set before the clock was
    put back.
    """
    return sa.or_(
        notice.lease_until.is_(None),
        notice.lease_until <= now,
        notice.lease_until > now + 2 * _LEASE,
    )


def _is_over(now: datetime) -> sa.ColumnElement[bool]:
    """Return the condition under which a receiver has nothing to hear any more."""
    ended = sa.select(Session.id).where(
        sa.or_(
            Session.deleted_at.is_not(None),
            sa.and_(Session.purged_at.is_not(None), Session.changed_at <= now - _KEPT),
        )
    )
    waits = sa.exists().where(Notice.receiver_id == Receiver.id, _IS_PENDING)
    return sa.and_(Receiver.session_id.in_(ended), ~waits)


ALWAYS = frozenset({NoticeEvent.ADDED.value, NoticeEvent.ENDED.value})
"""Events that are told however often a receiver was told of others."""
