"""Queries on invitations."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.storage.models import Invitation


class InvitationRepository:
    """Invitations in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def add(self, invitation: Invitation) -> None:
        """Store an invitation."""
        self._transaction.add(invitation)
        self._transaction.flush()

    def by_digest(self, digest: str) -> Invitation | None:
        """Return the invitation of a code's digest, as it is now."""
        return self._transaction.get(Invitation, digest, populate_existing=True)

    def revoke_unused(
        self, session_id: str, slots: Collection[str], now: datetime
    ) -> None:
        """End earlier invitations of slots that were not used."""
        self._transaction.execute(
            sa.update(Invitation)
            .where(
                Invitation.session_id == session_id,
                Invitation.slot.in_(slots),
                Invitation.used_at.is_(None),
                Invitation.revoked_at.is_(None),
            )
            .values(revoked_at=now)
        )

    def revoke_used(
        self, session_id: str, slot: str | None, now: datetime
    ) -> list[str]:
        """End the invitations with which slots were taken; return those slots."""
        ended = self._transaction.scalars(
            sa.update(Invitation)
            .where(
                Invitation.session_id == session_id,
                sa.true() if slot is None else Invitation.slot == slot,
                Invitation.used_at.is_not(None),
                Invitation.revoked_at.is_(None),
            )
            .values(revoked_at=now)
            .returning(Invitation.slot)
        )
        return sorted(ended)
