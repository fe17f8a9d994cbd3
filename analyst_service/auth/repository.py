"""Queries on credentials."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.models import Credential


class CredentialRepository:
    """Credentials in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def add(self, credential: Credential) -> None:
        """Store a credential."""
        self._transaction.add(credential)
        self._transaction.flush()

    def by_digest(self, digest: str, now: datetime) -> Credential | None:
        """Return the credential of a secret's digest, or of its last secret's."""
        last = sa.and_(
            Credential.previous_digest == digest, Credential.previous_until > now
        )
        return self._transaction.scalar(
            sa.select(Credential).where(
                sa.or_(Credential.secret_digest == digest, last)
            )
        )

    def by_id(self, credential_id: str, now: datetime) -> Credential | None:
        """Return a credential that is valid now, locked."""
        return self._transaction.scalar(
            sa.select(Credential)
            .where(
                Credential.id == credential_id,
                Credential.revoked_at.is_(None),
                Credential.expires_at > now,
            )
            .with_for_update()
        )

    def all(self) -> list[Credential]:
        """Return all credentials, the newest first."""
        ordered = sa.select(Credential).order_by(Credential.created_at.desc())
        return list(self._transaction.scalars(ordered))

    def end_tokens(self, session_id: str, slot: str, at: datetime) -> None:
        """Let the tokens of a slot end at a time, unless they end before it."""
        self._transaction.execute(
            sa.update(Credential)
            .where(
                Credential.session_id == session_id,
                Credential.slot == slot,
                Credential.expires_at > at,
            )
            .values(expires_at=at)
        )

    def revoke_tokens(self, session_id: str, now: datetime) -> int:
        """Revoke all tokens of a session; return how many were valid so far."""
        revoked = self._transaction.execute(
            sa.update(Credential)
            .where(Credential.session_id == session_id, Credential.revoked_at.is_(None))
            .values(revoked_at=now)
            .returning(Credential.id)
        )
        return len(revoked.all())

    def revoke(self, credential_id: str, now: datetime) -> bool:
        """Revoke one credential; return whether it was valid so far."""
        revoked = self._transaction.execute(
            sa.update(Credential)
            .where(Credential.id == credential_id, Credential.revoked_at.is_(None))
            .values(revoked_at=now)
            .returning(Credential.id)
        )
        return revoked.first() is not None
