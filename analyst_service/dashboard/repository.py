"""Queries on visits of browsers."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.models import BrowserVisit, Credential, Principal

_FOUND = (
    sa.select(Credential, Principal)
    .join(Principal, Credential.principal_id == Principal.id)
    .join(BrowserVisit, BrowserVisit.credential_id == Credential.id)
    .where(
        BrowserVisit.secret_digest == sa.bindparam("digest"),
        BrowserVisit.expires_at > sa.bindparam("now"),
    )
)


class VisitRepository:
    """Visits in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def add(self, visit: BrowserVisit) -> None:
        """Store a visit."""
        self._transaction.add(visit)
        self._transaction.flush()

    def find(self, digest: str, now: datetime) -> tuple[Credential, Principal] | None:
        """Return the key with which a visit began that goes on still, and whose it is."""
        asked = {"digest": digest, "now": now}
        found = self._transaction.execute(_FOUND, asked).first()
        return None if found is None else (found[0], found[1])

    def remove(self, digest: str) -> None:
        """End a visit."""
        self._transaction.execute(
            sa.delete(BrowserVisit).where(BrowserVisit.secret_digest == digest)
        )

    def remove_ended(self, now: datetime) -> None:
        """Forget visits whose time is over."""
        self._transaction.execute(
            sa.delete(BrowserVisit).where(BrowserVisit.expires_at <= now)
        )
