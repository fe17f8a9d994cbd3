"""Removing what is no longer needed."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Self

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.auth.service import AuthService, Caller, Role
from analyst_service.monitoring.administrative_acts import (
    SERVICE,
    Act,
    Actor,
    log_when_committed,
)
from analyst_service.monitoring.logs import describe
from analyst_service.process_context import Service
from analyst_service.sessions.service import SessionService
from analyst_service.storage.database import Database, claim
from analyst_service.storage.models import (
    Contribution,
    Invitation,
    Member,
    Result,
    Session,
    Task,
)
from analyst_service.transactions.audit import Audit
from clustering_protocols.terms.captions import DECADE
from clustering_protocols.terms.retention import Retention
from clustering_protocols.wire.states import OVER, SessionState

_OVER = sorted(state.value for state in OVER)


def _find_ended(
    transaction: Transaction, before: datetime, *, lock: bool = False
) -> list[Session]:
    """Return sessions that ended by a time and hold contributions still."""
    query = sa.select(Session).where(
        Session.state.in_(_OVER),
        Session.purged_at.is_(None),
        Session.changed_at <= before,
    )
    if lock:
        query = query.with_for_update(skip_locked=True)
    return list(transaction.scalars(query))


def _purge(transaction: Transaction, session_id: str, now: datetime) -> set[str]:
    """Forget tasks, state and the bytes of contributions; return the digests of blobs.

    The rows of contributions stay: they are the receipts.
    """
    in_blobs = Contribution.content.is_(None)
    digests = _digests(
        transaction,
        sa.select(Task.digest).where(Task.session_id == session_id),
        sa.select(Contribution.digest)
        .where(Contribution.session_id == session_id)
        .where(in_blobs),
        sa.select(Session.state_digest).where(Session.id == session_id),
    )
    transaction.execute(sa.delete(Task).where(Task.session_id == session_id))
    transaction.execute(
        sa.update(Contribution)
        .where(Contribution.session_id == session_id, ~in_blobs)
        .values(content=None)
        .execution_options(synchronize_session=False)
    )
    _change(transaction, session_id, state_digest=None, purged_at=now)
    return digests


def _erase(transaction: Transaction, session_id: str, now: datetime) -> set[str]:
    """Forget all but the audit; return the digests of what was named."""
    digests = _purge(transaction, session_id, now)
    digests |= _digests(
        transaction,
        sa.select(Result.digest).where(Result.session_id == session_id),
        sa.select(Session.summary_digest).where(Session.id == session_id),
    )
    for kind in (Contribution, Result, Invitation, Member):
        transaction.execute(sa.delete(kind).where(kind.session_id == session_id))
    _change(
        transaction,
        session_id,
        title="",
        terms=b"",
        agreement=None,
        detail=None,
        figures=None,
        chosen=None,
        profiles=None,
        summary_digest=None,
        deleted_at=now,
    )
    return digests


def live_digests(transaction: Transaction) -> set[str]:
    """Return all digests that a row names."""
    return set(transaction.scalars(_select_digests()))


def _digests(transaction: Transaction, *queries: sa.Select[Any]) -> set[str]:
    """Return what the queries find, without NULL."""
    return set(filter(None, transaction.scalars(sa.union(*queries))))


def _change(transaction: Transaction, session_id: str, **values: object) -> None:
    transaction.execute(
        sa.update(Session)
        .where(Session.id == session_id)
        .values(**values)
        .execution_options(synchronize_session=False)
    )


def _select_digests(digest: str | None = None) -> sa.CompoundSelect[Any]:
    """Return the query for all digests that rows name, or for one of them."""
    kept = (
        Session.id == Contribution.session_id,
        Session.purged_at.is_(None),
        Contribution.content.is_(None),  # else the bytes are in the row
    )
    sources: dict[Any, tuple[sa.ColumnElement[bool], ...]] = {
        Contribution.digest: kept,
        Task.digest: (),
        Result.digest: (),
        Session.state_digest: (),
        Session.summary_digest: (),
    }
    return sa.union_all(
        *(
            sa.select(column).where(
                column.is_not(None) if digest is None else column == digest, *conditions
            )
            for column, conditions in sources.items()
        )
    )


log = logging.getLogger(__name__)

SWEEP_SECONDS: Final = 60.0
"""How often to look for what is to be removed."""

ORPHAN_AGE: Final = timedelta(minutes=30)
"""Age at which blobs that no row names are removed."""

_TOKENS_KEPT = timedelta(days=1)
_MARK: Final = b'"retention"'
_AT_ONCE: Final = 100


class RetentionService:
    """Retention over several transactions: rows go first, then blobs nobody names."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._clock = service.clock

    def purge_ended(self) -> None:
        """Remove contributions, tasks and states of sessions whose time is over."""
        kept = timedelta(seconds=self._service.settings.retention_seconds)
        before = self._clock.now() - kept

        def purge(transaction: Transaction) -> set[str]:
            digests: set[str] = set()
            for session in _find_ended(transaction, before, lock=True):
                digests |= _purge(transaction, session.id, self._clock.now())
                Audit(transaction).append(session.id, "purged", self._clock.now())
            return digests

        with self._service.database.read() as transaction:
            is_due = bool(_find_ended(transaction, before))
        if is_due:
            self._remove(self._service.database.transact(purge))

    def delete(self, caller: Caller, session_id: str) -> None:
        """Remove all of a session but its audit; one that runs is cancelled first."""
        caller.require(Role.COORDINATOR, Role.ADMINISTRATOR)
        self._remove(
            self._service.database.transact(
                lambda transaction: self._delete(transaction, caller, session_id)
            )
        )

    def delete_ended(self) -> None:
        """Delete sessions that ended long enough ago, where the settings say how long.

        Each in a transaction of its own: nobody waits for all of them.
        """
        seconds = self._service.settings.delete_seconds
        if seconds is None:
            return
        before = self._clock.now() - timedelta(seconds=seconds)
        with self._service.database.read() as transaction:
            query = sa.select(Session.id).where(
                Session.state.in_(_OVER),
                Session.deleted_at.is_(None),
                Session.changed_at <= before,
            )
            due = list(transaction.scalars(query))
        for session_id in due:
            expire = partial(self._expire, session_id=session_id)
            self._remove(self._service.database.transact(expire))

    def drop_tokens(self) -> None:
        """Remove the tokens of sessions that were deleted a day ago.

        Until then parties that ask read that their session was deleted.
        """
        before = self._clock.now() - _TOKENS_KEPT
        with self._service.database.read() as transaction:
            is_due = AuthService(transaction, self._clock).has_tokens(before)
        if is_due:
            self._service.database.transact(
                lambda transaction: AuthService(transaction, self._clock).remove_tokens(
                    before
                )
            )

    def sweep(self) -> None:
        """Remove drafts that a crash left, and blobs that no row names.

        Young ones stay: a step writes blobs before a row names them.
        """
        blobs = self._service.blobs
        before = (self._clock.now() - ORPHAN_AGE).timestamp()
        with self._service.database.read() as transaction:
            live = live_digests(transaction)
        blobs.sweep(before, live)
        self._remove(digest for digest in blobs.older(before) if digest not in live)

    def _delete(
        self, transaction: Transaction, caller: Caller, session_id: str
    ) -> set[str]:
        sessions = SessionService(transaction, self._clock)
        session = sessions.visible(caller, session_id, lock=True, deleted=True)
        if session.deleted_at is not None:
            return set()
        if SessionState(session.state) not in OVER:
            sessions.cancel(caller, session_id)
        actor = AuthService(transaction, self._clock).actor(caller)
        return self._forget(transaction, session, actor)

    def _expire(self, transaction: Transaction, session_id: str) -> set[str]:
        """Delete a session whose time is over, unless another process did."""
        found = SessionService(transaction, self._clock).with_ids(
            [session_id], lock=True
        )
        session = found[session_id]
        if session.deleted_at is not None:
            return set()
        return self._forget(transaction, session, SERVICE)

    def _forget(
        self, transaction: Transaction, session: Session, actor: Actor
    ) -> set[str]:
        now = self._clock.now()
        digests = _erase(transaction, session.id, now)
        Audit(transaction).append(session.id, "deleted", now)
        log_when_committed(transaction, Act.SESSION_DELETED, actor, session=session.id)
        return digests

    def _remove(self, digests: Iterable[str]) -> None:
        """Remove those of the blobs that no row names."""
        for digest in digests:
            with self._service.database.write() as transaction:
                claim(transaction, [digest])
                if transaction.scalar(_select_digests(digest).limit(1)) is None:
                    self._service.blobs.remove(digest)


class Sweeper:
    """The keeper: a thread that purges and sweeps while it is entered; several may."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._retention = RetentionService(service)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="keeper")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._thread.join()

    def turn(self) -> None:
        """Remove once what is to be removed now, and write when keys were last used."""
        self._note_uses()
        self._retention.purge_ended()
        self._retention.delete_ended()
        self._retention.drop_tokens()
        self._service.database.truncate_log()
        self._retention.sweep()

    def _note_uses(self) -> None:
        last, clock = self._service.uses.take(), self._service.clock
        if last:
            self._service.database.transact(
                lambda transaction: AuthService(transaction, clock).note_uses(last)
            )

    def _loop(self) -> None:
        while not self._stop.wait(SWEEP_SECONDS):
            self._service.is_ready()  # a change is logged, though nobody asks
            try:
                self.turn()
            except Exception as error:  # noqa: BLE001  what it keeps is swept later
                log.error("keeper: %s", describe(error))  # noqa: TRY400  no traceback: it may hold values


# What the signed terms of sessions say, all of them together. Settings may have changed
# since a session was opened, or its database was restored elsewhere: a start checks them
# against every session that is not deleted.


def strictest_retention(database: Database) -> Retention | None:
    """Return the shortest times that terms of any session allow; None where none do.

    Contributions of a session that were deleted are bound by nothing any more.
    """
    with database.read() as transaction:
        found = [
            _limit(Retention.model_validate(said), purged_at)
            for terms, purged_at in _list_terms(transaction)
            if _MARK in terms and (said := json.loads(terms).get("retention"))
        ]
    if not found:
        return None
    return Retention(
        contributions=min(each.contributions for each in found),
        session=min(each.session for each in found),
    )


def _list_terms(transaction: Transaction) -> Iterator[tuple[bytes, datetime | None]]:
    """Yield the terms of sessions that are not deleted, and when they were purged."""
    query = sa.select(Session.id, Session.terms, Session.purged_at)
    query = query.where(Session.deleted_at.is_(None))
    query, last = query.order_by(Session.id).limit(_AT_ONCE), ""
    while rows := transaction.execute(query.where(Session.id > last)).all():
        yield from ((row.terms, row.purged_at) for row in rows)
        last = rows[-1].id


def _limit(said: Retention, purged_at: datetime | None) -> Retention:
    """Return what still binds: nothing does contributions that were deleted."""
    if purged_at is None:
        return said
    return said.model_copy(update={"contributions": DECADE})
