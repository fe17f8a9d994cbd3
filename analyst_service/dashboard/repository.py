"""Queries on visits of browsers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.storage.models import BrowserVisit, Credential, Principal

_GOES_ON = BrowserVisit.expires_at > sa.bindparam("now")
_FOUND = (
    sa.select(Credential, Principal, BrowserVisit)
    .join(Principal, Credential.principal_id == Principal.id)
    .join(BrowserVisit, BrowserVisit.credential_id == Credential.id)
    .where(BrowserVisit.secret_digest == sa.bindparam("digest"), _GOES_ON)
)
_OWN = (
    sa.select(BrowserVisit)
    .join(Credential, BrowserVisit.credential_id == Credential.id)
    .where(
        Credential.principal_id == sa.bindparam("principal"),
        Credential.revoked_at.is_(None),
        Credential.expires_at > sa.bindparam("now"),
        _GOES_ON,
    )
    .order_by(BrowserVisit.created_at.desc(), BrowserVisit.secret_digest)
)


class FoundVisit(NamedTuple):
    """A visit that continues, the key with which it began, and whose it is."""

    credential: Credential
    principal: Principal
    visit: BrowserVisit


class VisitRepository:
    """Visits in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def add(self, visit: BrowserVisit) -> None:
        """Store a visit."""
        self._transaction.add(visit)
        self._transaction.flush()

    def find(self, digest: str, now: datetime) -> FoundVisit | None:
        """Return the visit of a cookie's digest, where it continues still."""
        asked = {"digest": digest, "now": now}
        found = self._transaction.execute(_FOUND, asked).first()
        return None if found is None else FoundVisit(*found)

    def own(self, principal_id: str | None, now: datetime) -> Sequence[BrowserVisit]:
        """Return the visits of somebody's keys that continue, the newest first."""
        asked = {"principal": principal_id, "now": now}
        return self._transaction.scalars(_OWN, asked).all()

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
