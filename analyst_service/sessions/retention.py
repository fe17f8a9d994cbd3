"""Removing what is no longer needed: rows go first, then blobs that no row names."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final, Self

import sqlalchemy as sa
from sqlalchemy import orm

from analyst_service import credentials
from analyst_service.credentials import Caller, Role
from analyst_service.monitoring.administrative_acts import (
    SERVICE,
    Act,
    Actor,
    log_when_committed,
)
from analyst_service.monitoring.logs import describe
from analyst_service.process_context import Service
from analyst_service.sessions.service import OVER_STATES, cancel, visible, with_ids
from analyst_service.storage.database import Database, Transaction, claim
from analyst_service.storage.models import (
    Contribution,
    Invitation,
    Member,
    Result,
    Session,
    Task,
)
from analyst_service.transactions import audit
from clustering_protocols.terms.captions import DECADE
from clustering_protocols.terms.retention import Retention

log = logging.getLogger(__name__)

SWEEP_SECONDS: Final = 60.0
"""How often to look for what is to be removed."""

ORPHAN_AGE: Final = timedelta(minutes=30)
"""Age at which blobs that no row names are removed."""

_TOKENS_KEPT = timedelta(days=1)
_MARK: Final = b'"retention"'
_AT_ONCE: Final = 100
_IN_BLOB = Contribution.content.is_(None)


# Digests that rows name


def live_digests(db: orm.Session) -> set[str]:
    """Return the digests of all blobs that a row names."""
    return set(db.scalars(_select_digests()))


def _select_digests(digest: str | None = None) -> sa.CompoundSelect[Any]:
    """Return the query for all digests of blobs that rows name, or for one of them."""
    held = Session.id == Contribution.session_id, Session.purged_at.is_(None), _IN_BLOB
    sources: dict[Any, tuple[sa.ColumnElement[bool], ...]] = {
        Contribution.digest: held,
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


def remove_blobs(service: Service, digests: Iterable[str]) -> None:
    """Remove those of the blobs that no row names."""
    for digest in digests:
        with service.database.write() as db:
            claim(db, [digest])
            if db.scalar(_select_digests(digest).limit(1)) is None:
                service.blobs.remove(digest)


# Rows. Each function returns the digests of blobs that the removed rows named.


def _purge(db: Transaction, session_id: str) -> set[str]:
    """Forget tasks, state and the bytes of contributions, whose rows are the receipts."""
    of_session = Contribution.session_id == session_id
    digests = _collect(
        db,
        sa.select(Task.digest).where(Task.session_id == session_id),
        sa.select(Contribution.digest).where(of_session, _IN_BLOB),
        sa.select(Session.state_digest).where(Session.id == session_id),
    )
    db.execute(sa.delete(Task).where(Task.session_id == session_id))
    db.execute(
        sa.update(Contribution)
        .where(of_session, ~_IN_BLOB)
        .values(content=None)
        .execution_options(synchronize_session=False)
    )
    _change(db, session_id, state_digest=None, purged_at=db.now())
    return digests


def _erase(db: Transaction, session: Session, actor: Actor) -> set[str]:
    """Forget all but the audit."""
    digests = _purge(db, session.id)
    digests |= _collect(
        db,
        sa.select(Result.digest).where(Result.session_id == session.id),
        sa.select(Session.summary_digest).where(Session.id == session.id),
    )
    for kind in (Contribution, Result, Invitation, Member):
        db.execute(sa.delete(kind).where(kind.session_id == session.id))
    now = db.now()
    _change(
        db,
        session.id,
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
    audit.append(db, session.id, "deleted", now)
    log_when_committed(db, Act.SESSION_DELETED, actor, session=session.id)
    return digests


def _collect(db: Transaction, *queries: sa.Select[Any]) -> set[str]:
    return set(filter(None, db.scalars(sa.union(*queries))))


def _change(db: Transaction, session_id: str, **values: object) -> None:
    db.execute(
        sa.update(Session)
        .where(Session.id == session_id)
        .values(**values)
        .execution_options(synchronize_session=False)
    )


def _delete(db: Transaction, caller: Caller, session_id: str) -> set[str]:
    session = visible(db, caller, session_id, lock=True, deleted=True)
    if session.deleted_at is not None:
        return set()
    if session.state not in OVER_STATES:
        cancel(db, caller, session_id)
    return _erase(db, session, credentials.actor(db, caller))


def _purge_due(db: Transaction, due: sa.Select[Session]) -> set[str]:
    digests: set[str] = set()
    for session in db.scalars(due.with_for_update(skip_locked=True)).all():
        digests |= _purge(db, session.id)
        audit.append(db, session.id, "purged", db.now())
    return digests


def _expire(db: Transaction, session_id: str) -> set[str]:
    """Delete a session whose time is over, unless another process did."""
    session = with_ids(db, [session_id], lock=True)[session_id]
    return set() if session.deleted_at is not None else _erase(db, session, SERVICE)


# Several transactions each


def delete_session(service: Service, caller: Caller, session_id: str) -> None:
    """Remove all of a session but its audit; one that runs is cancelled first."""
    caller.require(Role.COORDINATOR, Role.ADMINISTRATOR)
    remove_blobs(service, service.database.transact(_delete, caller, session_id))


def purge_ended(service: Service) -> None:
    """Remove contributions, tasks and states of sessions whose time is over."""
    before = service.clock.now() - timedelta(seconds=service.settings.retention_seconds)
    due = sa.select(Session).where(
        Session.state.in_(OVER_STATES),
        Session.purged_at.is_(None),
        Session.changed_at <= before,
    )
    with service.database.read() as db:
        is_due = db.scalars(due.limit(1)).first() is not None
    if is_due:
        remove_blobs(service, service.database.transact(_purge_due, due))


def delete_ended(service: Service) -> None:
    """Delete sessions that ended long enough ago, where the settings say how long.

    Each in a transaction of its own: nobody waits for all of them.
    """
    seconds = service.settings.delete_seconds
    if seconds is None:
        return
    query = sa.select(Session.id).where(
        Session.state.in_(OVER_STATES),
        Session.deleted_at.is_(None),
        Session.changed_at <= service.clock.now() - timedelta(seconds=seconds),
    )
    with service.database.read() as db:
        due = db.scalars(query).all()
    for session_id in due:
        remove_blobs(service, service.database.transact(_expire, session_id))


def drop_tokens(service: Service) -> None:
    """Remove the tokens of sessions that were deleted a day ago.

    Until then parties that ask read that their session was deleted.
    """
    before = service.clock.now() - _TOKENS_KEPT
    if service.database.query(credentials.has_old_tokens, before):
        service.database.transact(credentials.remove_old_tokens, before)


def sweep(service: Service) -> None:
    """Remove drafts that a crash left, and blobs that no row names.

    Young ones stay: a step writes blobs before a row names them.
    """
    before = (service.clock.now() - ORPHAN_AGE).timestamp()
    live = service.database.query(live_digests)
    service.blobs.sweep(before, live)
    old = service.blobs.older(before)
    remove_blobs(service, (digest for digest in old if digest not in live))


class Sweeper:
    """The keeper: a thread that purges and sweeps while it is entered; several may."""

    def __init__(self, service: Service) -> None:
        self._service = service
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
        service = self._service
        if last := service.uses.take():
            service.database.transact(credentials.note_uses, last)
        purge_ended(service)
        delete_ended(service)
        drop_tokens(service)
        service.database.truncate_log()
        sweep(service)

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
    with database.read() as db:
        limits = [
            _limit(Retention.model_validate(fields), purged_at)
            for terms, purged_at in _list_terms(db)
            if _MARK in terms and (fields := json.loads(terms).get("retention"))
        ]
    if not limits:
        return None
    return Retention(
        contributions=min(limit.contributions for limit in limits),
        session=min(limit.session for limit in limits),
    )


def _list_terms(db: Transaction) -> Iterator[tuple[bytes, datetime | None]]:
    """Yield the terms of sessions that are not deleted, and when they were purged."""
    query = sa.select(Session.id, Session.terms, Session.purged_at)
    query = query.where(Session.deleted_at.is_(None))
    query, last = query.order_by(Session.id).limit(_AT_ONCE), ""
    while rows := db.execute(query.where(Session.id > last)).all():
        yield from ((row.terms, row.purged_at) for row in rows)
        last = rows[-1].id


def _limit(retention: Retention, purged_at: datetime | None) -> Retention:
    """Return what still binds: nothing does contributions that were deleted."""
    if purged_at is None:
        return retention
    return retention.model_copy(update={"contributions": DECADE})
