"""Queries of retention: what ended, what it held, and which blobs are named."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.storage.models import (
    Contribution,
    Invitation,
    Member,
    Result,
    Session,
    Task,
)
from clustering_protocols.wire.states import OVER

_OVER = sorted(state.value for state in OVER)


class RetentionRepository:
    """What may be removed, in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def find_ended(self, before: datetime, *, lock: bool = False) -> list[Session]:
        """Return sessions that ended by a time and hold contributions still."""
        query = sa.select(Session).where(
            Session.state.in_(_OVER),
            Session.purged_at.is_(None),
            Session.changed_at <= before,
        )
        if lock:
            query = query.with_for_update(skip_locked=True)
        return list(self._transaction.scalars(query))

    def deletable(self, before: datetime) -> list[str]:
        """Return the ids of sessions that ended by a time and are not deleted."""
        query = sa.select(Session.id).where(
            Session.state.in_(_OVER),
            Session.deleted_at.is_(None),
            Session.changed_at <= before,
        )
        return list(self._transaction.scalars(query))

    def purge(self, session_id: str, now: datetime) -> set[str]:
        """Forget tasks, state and the bytes of contributions; return their digests.

        The rows of contributions stay: they are the receipts.
        """
        digests = self._digests(Task.digest, Task.session_id == session_id)
        digests |= self._digests(
            Contribution.digest, Contribution.session_id == session_id
        )
        digests |= self._digests(Session.state_digest, Session.id == session_id)
        self._delete(Task, session_id)
        self._change(session_id, state_digest=None, purged_at=now)
        return digests

    def forget(self, session_id: str, now: datetime) -> set[str]:
        """Forget all but the audit; return the digests of what was named."""
        digests = self.purge(session_id, now)
        digests |= self._digests(Result.digest, Result.session_id == session_id)
        digests |= self._digests(Session.summary_digest, Session.id == session_id)
        for table in (Contribution, Result, Invitation, Member):
            self._delete(table, session_id)
        self._change(
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

    def live(self) -> set[str]:
        """Return all digests that a row names."""
        return set(self._transaction.scalars(_select_digests()))

    def is_live(self, digest: str) -> bool:
        """Return whether a row names a digest."""
        return self._transaction.scalar(_select_digests(digest).limit(1)) is not None

    def _digests(self, column: Any, condition: sa.ColumnElement[bool]) -> set[str]:
        query = sa.select(column).where(condition, column.is_not(None))
        return set(self._transaction.scalars(query))

    def _delete(
        self,
        table: type[Task | Contribution | Result | Invitation | Member],
        session_id: str,
    ) -> None:
        self._transaction.execute(
            sa.delete(table).where(table.session_id == session_id)
        )

    def _change(self, session_id: str, **values: object) -> None:
        self._transaction.execute(
            sa.update(Session)
            .where(Session.id == session_id)
            .values(**values)
            .execution_options(synchronize_session=False)
        )


def _select_digests(digest: str | None = None) -> sa.CompoundSelect[Any]:
    """Return the query for all digests that rows name, or for one of them."""
    kept = Session.id == Contribution.session_id, Session.purged_at.is_(None)
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
