"""What the signed terms of sessions say of retention, all of them together.

Settings may have changed since a session was opened, or its database was restored
elsewhere. So a start checks them against every session that is not deleted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Final

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.storage.database import Database
from analyst_service.storage.models import Session
from clustering_protocols.terms.captions import DECADE
from clustering_protocols.terms.retention import Retention

_MARK: Final = b'"retention"'
_AT_ONCE: Final = 100


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
