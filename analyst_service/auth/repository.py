"""Queries on credentials."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Session as Unit

from analyst_service.models import Credential


class CredentialRepository:
    """Credentials in one transaction."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    def add(self, credential: Credential) -> None:
        """Store a credential."""
        self._unit.add(credential)
        self._unit.flush()

    def by_digest(self, digest: str) -> Credential | None:
        """Return the credential of a secret's digest."""
        return self._unit.scalar(
            sa.select(Credential).where(Credential.secret_digest == digest)
        )

    def all(self) -> list[Credential]:
        """Return all credentials, the newest first."""
        ordered = sa.select(Credential).order_by(Credential.created_at.desc())
        return list(self._unit.scalars(ordered))

    def revoke(self, credential_id: str, now: datetime) -> bool:
        """Revoke one credential; return whether it was valid so far."""
        revoked = self._unit.execute(
            sa.update(Credential)
            .where(Credential.id == credential_id, Credential.revoked_at.is_(None))
            .values(revoked_at=now)
            .returning(Credential.id)
        )
        return revoked.first() is not None
