"""Queries on credentials."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.models import Credential, Principal, UTCDateTime

# a key and its principal, or a party's token
Owned = tuple[Credential, Principal | None]
_OWNED = sa.select(Credential, Principal).outerjoin(Principal)

# Two that most requests ask, written once: to write one costs more than to send it.
_DIGEST = sa.bindparam("digest", type_=sa.String)
_ID = sa.bindparam("credential_id", type_=sa.String)
_NOW = sa.bindparam("now", type_=UTCDateTime())
_BY_DIGEST = _OWNED.where(
    sa.or_(
        Credential.secret_digest == _DIGEST,
        sa.and_(
            Credential.previous_digest == _DIGEST, Credential.previous_until > _NOW
        ),
    )
)
_VALID = sa.and_(
    Credential.id == _ID, Credential.revoked_at.is_(None), Credential.expires_at > _NOW
)
_LOCKED = sa.select(Credential).where(_VALID).with_for_update()
_IS_VALID = sa.select(Credential.id).where(_VALID)


class CredentialRepository:
    """Credentials and their principals in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def add(self, stored: Credential | Principal) -> None:
        """Store a credential or a principal."""
        self._transaction.add(stored)
        self._transaction.flush()

    def by_digest(self, digest: str, now: datetime) -> Owned | None:
        """Return the credential of a secret's digest, or of its last secret's."""
        asked = {"digest": digest, "now": now}
        found = self._transaction.execute(_BY_DIGEST, asked).first()
        return None if found is None else (found[0], found[1])

    def by_id(self, credential_id: str, now: datetime) -> Credential | None:
        """Return a credential that is valid now, locked."""
        asked = {"credential_id": credential_id, "now": now}
        return self._transaction.scalar(_LOCKED, asked)

    def is_valid(self, credential_id: str, now: datetime) -> bool:
        """Return whether a credential is valid now; takes no lock."""
        asked = {"credential_id": credential_id, "now": now}
        return self._transaction.scalar(_IS_VALID, asked) is not None

    def all(self) -> list[Owned]:
        """Return all credentials, the newest first."""
        ordered = _OWNED.order_by(Credential.created_at.desc())
        return [(found[0], found[1]) for found in self._transaction.execute(ordered)]

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

    def revoke_tokens(self, session_id: str, slot: str | None, now: datetime) -> int:
        """Revoke a slot's tokens, or all; return how many were valid so far."""
        revoked = self._transaction.execute(
            sa.update(Credential)
            .where(
                Credential.session_id == session_id,
                sa.true() if slot is None else Credential.slot == slot,
                Credential.revoked_at.is_(None),
            )
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

    def place(self, credential_id: str) -> tuple[str, str] | None:
        """Return the session and slot of a party's token; None for a key."""
        found = self._transaction.get(Credential, credential_id)
        if found is None or found.session_id is None or found.slot is None:
            return None
        return found.session_id, found.slot
