"""Removal of data after its retention time: first rows, then blobs that no row names."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, Final, Self

import sqlalchemy as sa
from sqlalchemy import orm

from analyst_service import audit, credentials, notices
from analyst_service.credentials import Caller, Role
from analyst_service.database import Transaction, claim
from analyst_service.logs import SERVICE, Act, Actor, describe, log_when_committed
from analyst_service.models import (
    Contribution,
    Invitation,
    Member,
    Result,
    Session,
    Task,
)
from analyst_service.process_context import Service
from analyst_service.sessions import (
    OVER_STATES,
    cancel_session,
    find_sessions,
    visible_session,
)

log = logging.getLogger(__name__)

SWEEP_SECONDS: Final = 60.0
"""Interval of the sweeps."""

ORPHAN_AGE: Final = timedelta(minutes=30)
"""Age at which blobs that no row names are removed."""

_TOKEN_RETENTION = timedelta(days=1)
_AT_ONCE: Final = 1_000


# Digests that rows name


def live_digests(db: orm.Session) -> set[str]:
    """Return the digests of all blobs that a row names."""
    return set(db.scalars(_select_digests()))


def _select_digests(digest: str | None = None) -> sa.CompoundSelect[Any]:
    """Return the query for the digests that rows name, or for one of them."""
    sources: dict[Any, tuple[sa.ColumnElement[bool], ...]] = {
        Contribution.digest: (
            Contribution.content.is_(None),
            Session.id == Contribution.session_id,
            Session.purged_at.is_(None),
        ),
        Task.digest: (Task.content.is_(None),),
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
    """Remove the blobs that no row names any more."""
    for digest in digests:
        with service.database.write() as db:
            claim(db, [digest])
            if db.scalar(_select_digests(digest).limit(1)) is None:
                service.blobs.remove(digest)


# Rows. Each function returns the digests that the removed rows named.


def _purge(db: Transaction, session_id: str) -> set[str]:
    """Remove tasks, state and contributions; rows of contributions stay as receipts."""
    in_blobs = (
        sa.select(kind.digest).where(
            kind.session_id == session_id, kind.content.is_(None)
        )
        for kind in (Task, Contribution)
    )
    state = sa.select(Session.state_digest).where(Session.id == session_id)
    digests = _collect_digests(db, *in_blobs, state)
    db.execute(sa.delete(Task).where(Task.session_id == session_id))
    db.execute(
        sa.update(Contribution)
        .where(Contribution.session_id == session_id, Contribution.content.is_not(None))
        .values(content=None)
        .execution_options(synchronize_session=False)
    )
    _update_session(db, session_id, state_digest=None, purged_at=db.now())
    return digests


def _erase(db: Transaction, session: Session, actor: Actor) -> set[str]:
    """Remove everything except the audit."""
    digests = _purge(db, session.id)
    digests |= _collect_digests(
        db,
        sa.select(Result.digest).where(Result.session_id == session.id),
        sa.select(Session.summary_digest).where(Session.id == session.id),
    )
    for kind in (Contribution, Result, Invitation, Member):
        db.execute(sa.delete(kind).where(kind.session_id == session.id))
    now = db.now()
    _update_session(
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


def _collect_digests(db: Transaction, *queries: sa.Select[Any]) -> set[str]:
    return set(filter(None, db.scalars(sa.union(*queries))))


def _update_session(db: Transaction, session_id: str, **values: object) -> None:
    db.execute(
        sa.update(Session)
        .where(Session.id == session_id)
        .values(**values)
        .execution_options(synchronize_session=False)
    )


def _delete(db: Transaction, caller: Caller, session_id: str) -> set[str]:
    session = visible_session(db, caller, session_id, lock=True, allow_deleted=True)
    if session.deleted_at is not None:
        return set()
    if session.state not in OVER_STATES:
        cancel_session(db, caller, session_id)
    return _erase(db, session, credentials.find_actor(db, caller))


# Functions of several transactions


def delete_session(service: Service, caller: Caller, session_id: str) -> None:
    """Remove a session except its audit; a running one is cancelled first."""
    caller.require_role(Role.COORDINATOR, Role.ADMINISTRATOR)
    remove_blobs(service, service.database.transact(_delete, caller, session_id))


def _list_due(
    service: Service,
    removed_at: orm.InstrumentedAttribute[Any],
    keep: orm.InstrumentedAttribute[Any],
    setting: int | None,
) -> Sequence[str]:
    """Return the ended sessions whose retention time is over and whose data still exist.

    removed_at: the column of the time of the removal.
    keep: the column of the retention (seconds) in the terms.
    setting: the retention (seconds) in the settings; None is no limit. The shorter
        retention holds.
    """
    remaining = sa.and_(Session.state.in_(OVER_STATES), removed_at.is_(None))
    now, due = service.clock.now(), list[str]()
    with service.database.read() as db:
        for in_terms in db.scalars(sa.select(keep).where(remaining).distinct()).all():
            limits = [limit for limit in (setting, in_terms) if limit is not None]
            if not limits:
                continue
            before = now - timedelta(seconds=min(limits))
            query = sa.select(Session.id).where(
                remaining, keep.is_not_distinct_from(in_terms)
            )
            due += db.scalars(query.where(Session.changed_at <= before)).all()
    return due


def purge_ended(service: Service) -> None:
    """Remove contributions, tasks and states when their retention time is over."""
    setting = service.settings.retention_seconds
    due = _list_due(service, Session.purged_at, Session.keep_contributions, setting)
    unpurged = (
        sa.select(Session)
        .where(Session.id.in_(due[:_AT_ONCE]), Session.purged_at.is_(None))
        .with_for_update(skip_locked=True)
    )

    def purge(db: Transaction) -> set[str]:
        digests: set[str] = set()
        for session in db.scalars(unpurged).all():
            digests |= _purge(db, session.id)
            audit.append(db, session.id, "purged", db.now())
        return digests

    if due:
        remove_blobs(service, service.database.transact(purge))


def delete_ended(service: Service) -> None:
    """Delete sessions when their retention time is over, each in its own transaction."""
    setting = service.settings.delete_seconds

    def expire(db: Transaction, session_id: str) -> set[str]:
        session = find_sessions(db, [session_id], lock=True)[session_id]
        # another process may have deleted it
        return set() if session.deleted_at is not None else _erase(db, session, SERVICE)

    for session_id in _list_due(
        service, Session.deleted_at, Session.keep_session, setting
    ):
        remove_blobs(service, service.database.transact(expire, session_id))


def sweep(service: Service) -> None:
    """Remove old drafts, which a crash left, and old blobs that no row names.

    Young blobs stay, because a step writes blobs before a row names them.
    """
    before = (service.clock.now() - ORPHAN_AGE).timestamp()
    live = service.database.query(live_digests)
    service.blobs.sweep(before, live)
    old = service.blobs.older_than(before)
    remove_blobs(service, (digest for digest in old if digest not in live))


class Sweeper:
    """A thread that purges and sweeps within a ``with`` block; several may run."""

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

    def run_once(self) -> None:
        """Remove everything that is due, and store when credentials were last used."""
        service = self._service
        if last := service.uses.take():
            service.database.transact(credentials.record_last_uses, last)
        purge_ended(service)
        delete_ended(service)
        service.database.transact(notices.remove_receivers_of_ended_sessions)
        # until then, a party that asks with its token learns of the deletion
        before = service.clock.now() - _TOKEN_RETENTION
        service.database.transact(credentials.remove_old_tokens, before)
        service.database.truncate_log()
        sweep(service)

    def _loop(self) -> None:
        while not self._stop.wait(SWEEP_SECONDS):
            self._service.is_ready()  # logs a change, even if nobody asks
            try:
                self.run_once()
            except Exception as error:  # noqa: BLE001  the next sweep tries again
                log.error("keeper: %s", describe(error))  # noqa: TRY400  no traceback: it may hold values
