"""Removal of data after its retention time: first the rows, then blobs without a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import orm

from analyst_service import audit, credentials, notices
from analyst_service.credentials import Caller, Role
from analyst_service.database import Transaction, lock_digests
from analyst_service.logs import SERVICE, Act, Actor, log_when_committed
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

SWEEP_SECONDS: Final = 60.0
"""Seconds between two sweeps; several processes may sweep."""

ORPHAN_AGE: Final = timedelta(minutes=30)
"""Blobs older than this are removed if no row refers to them."""

_TOKEN_RETENTION = timedelta(days=1)


# Digests to which rows refer


def find_live_digests(db: orm.Session) -> set[str]:
    """Return the digests of all blobs to which a row refers."""
    return set(db.scalars(_select_live_digests()))


def _select_live_digests(digest: str | None = None) -> sa.CompoundSelect[Any]:
    """Return a query for all digests to which rows refer, or for ``digest`` if one does."""
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
    """Remove those of the blobs to which no row refers any more."""
    for digest in digests:
        with service.database.write() as db:
            lock_digests(db, [digest])
            if db.scalar(_select_live_digests(digest).limit(1)) is None:
                service.blobs.remove(digest)


# Removal of rows. Each function returns the digests to which the removed rows referred.


def _purge_session(db: Transaction, session: Session) -> set[str]:
    """Remove tasks, state and contents of contributions, whose rows stay as receipts."""
    digests, now = _remove_payloads(db, session.id), db.now()
    _update_session(db, session.id, state_digest=None, purged_at=now)
    audit.add_line(db, session.id, "purged", now)
    return digests


def _remove_payloads(db: Transaction, session_id: str) -> set[str]:
    in_blobs = (
        sa.select(kind.digest).where(
            kind.session_id == session_id, kind.content.is_(None)
        )
        for kind in (Task, Contribution)
    )
    digests = _collect_digests(db, *in_blobs) | audit.state_digests(db, session_id)
    db.execute(sa.delete(Task).where(Task.session_id == session_id))
    db.execute(
        sa.update(Contribution)
        .where(Contribution.session_id == session_id, Contribution.content.is_not(None))
        .values(content=None)
        .execution_options(synchronize_session=False)
    )
    return digests


def _erase_session(db: Transaction, session: Session, actor: Actor) -> set[str]:
    """Remove everything of a session except its audit."""
    digests = _remove_payloads(db, session.id) | _collect_digests(
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
        stage=None,
        reason=None,
        detail=None,
        progress=None,
        figures=None,
        chosen=None,
        profiles=None,
        state_digest=None,
        summary_digest=None,
        purged_at=now,
        deleted_at=now,
    )
    audit.add_line(db, session.id, "deleted", now)
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


def _delete_rows(db: Transaction, caller: Caller, session_id: str) -> set[str]:
    session = visible_session(db, caller, session_id, lock=True, allow_deleted=True)
    if session.deleted_at is not None:
        return set()
    if session.state not in OVER_STATES:
        cancel_session(db, caller, session_id)
    return _erase_session(db, session, credentials.find_actor(db, caller))


# Functions that use several transactions


def delete_session(service: Service, caller: Caller, session_id: str) -> None:
    """Delete a session except for its audit; if it is open, it is cancelled first."""
    caller.require_role(Role.COORDINATOR, Role.ADMINISTRATOR)
    remove_blobs(service, service.database.transact(_delete_rows, caller, session_id))


def remove_expired(service: Service) -> None:
    """Remove the data of ended sessions whose retention time is over."""
    settings = service.settings
    _remove_after(
        service,
        _purge_session,
        Session.purged_at,
        Session.keep_contributions,
        settings.retention_seconds,
    )
    _remove_after(
        service,
        partial(_erase_session, actor=SERVICE),
        Session.deleted_at,
        Session.keep_session,
        settings.delete_seconds,
    )


def _remove_after(
    service: Service,
    remove: Callable[[Transaction, Session], set[str]],
    removed_at: orm.InstrumentedAttribute[Any],
    keep: orm.InstrumentedAttribute[Any],
    setting: int | None,
) -> None:
    """Remove data of sessions that ended longer ago than the retention time.

    Each session's data are removed in a separate transaction.

    removed_at: the column with the time of the removal.
    keep: the column with the retention time (seconds) that the terms set, or None.
    setting: the retention time (seconds) in the settings; None means no limit. The
        shorter of the times in the terms and in the settings applies.
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

    def remove_if_present(db: Transaction, session_id: str) -> set[str]:
        session = find_sessions(db, [session_id], lock=True)[session_id]
        # another process may have been first
        is_present = getattr(session, removed_at.key) is None
        return remove(db, session) if is_present else set()

    for session_id in due:
        remove_blobs(service, service.database.transact(remove_if_present, session_id))


def sweep_blobs(service: Service) -> None:
    """Remove old drafts, which a crash left behind, and old blobs without a row.

    Recent blobs stay, because a step writes blobs before any row refers to them. The
    clock of their store measures how old they are, because it dated them.
    """
    seconds = ORPHAN_AGE.total_seconds()
    live = service.database.query(find_live_digests)
    service.blobs.sweep(seconds, live)
    old = service.blobs.find_older_than(seconds)
    remove_blobs(service, (digest for digest in old if digest not in live))


def sweep(service: Service) -> None:
    """Remove all data whose retention time is over; store the last uses of credentials."""
    service.is_ready()  # logs changes even without requests
    last_uses, service.last_uses = service.last_uses, {}
    if last_uses:  # a crash loses those of the last minute
        service.database.transact(credentials.record_last_uses, last_uses)
    remove_expired(service)
    service.database.transact(notices.remove_receivers_of_ended_sessions)
    # Until its token is removed, a party that uses it learns of the deletion.
    before = service.clock.now() - _TOKEN_RETENTION
    service.database.transact(credentials.remove_old_tokens, before)
    service.database.truncate_write_ahead_log()
    sweep_blobs(service)
