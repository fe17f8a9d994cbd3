"""Queries on results."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.storage.models import Result, Session


class ResultRepository:
    """Results in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def digest(self, session_id: str, slot: str) -> str | None:
        """Return the blob of a slot's result."""
        found = self._transaction.get(Result, (session_id, slot))
        return found.digest if found else None

    def mark_sent(self, session_id: str, slot: str | None, now: datetime) -> bool:
        """Remember that a result (without a slot: the summary) was handed out.

        False if it was before.
        """
        marked = self._transaction.execute(
            sa.update(Result)
            .where(
                Result.session_id == session_id,
                Result.slot == slot,
                Result.sent_at.is_(None),
            )
            .values(sent_at=now)
            .returning(Result.slot)
            if slot is not None
            else sa.update(Session)
            .where(Session.id == session_id, Session.summary_sent_at.is_(None))
            .values(summary_sent_at=now)
            .returning(Session.id)
        )
        return marked.first() is not None

    def add(self, session_id: str, digests: Mapping[str, str]) -> None:
        """Store the results of all slots."""
        self._transaction.add_all(
            Result(session_id=session_id, slot=slot, digest=digest)
            for slot, digest in digests.items()
        )
        self._transaction.flush()
