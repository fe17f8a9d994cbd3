"""Making, checking and revoking credentials."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256

from sqlalchemy.orm import Session as Unit

from analyst_service.auth.repository import CredentialRepository
from analyst_service.clock import Clock
from analyst_service.models import Credential
from clustering_protocols.errors import Forbidden, NotFound, Unauthenticated

_REFUSED = "It is missing, unknown, expired or revoked."


class Role(StrEnum):
    """What a credential is for."""

    ADMINISTRATOR = "administrator"
    COORDINATOR = "coordinator"
    PARTY = "party"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is asking."""

    credential_id: str
    role: Role
    session_id: str | None = None
    slot: str | None = None

    def require(self, *roles: Role) -> None:
        """Raise :class:`Forbidden` unless the caller has one of these roles."""
        if self.role not in roles:
            raise Forbidden(f"It needs the role {' or '.join(roles)}.")


def digest_of(secret: str) -> str:
    """Return what is kept of a secret. It is random, so a plain hash suffices."""
    return sha256(secret.encode()).hexdigest()


class AuthService:
    """Credentials in one transaction."""

    def __init__(self, unit: Unit, clock: Clock) -> None:
        self._credentials = CredentialRepository(unit)
        self._clock = clock

    def authenticate(self, header: str | None) -> Caller:
        """Return the caller of an Authorization header."""
        scheme, _, secret = (header or "").partition(" ")
        if scheme.lower() != "bearer" or not secret:
            raise Unauthenticated(_REFUSED)
        found = self._credentials.by_digest(digest_of(secret.strip()))
        if found is None or not _is_valid(found, self._clock.now()):
            raise Unauthenticated(_REFUSED)
        return Caller(found.id, Role(found.role), found.session_id, found.slot)

    def create_key(self, role: Role, label: str, seconds: int) -> tuple[str, str]:
        """Return the id and the secret of a new key; the secret is shown only here."""
        return self._create("ck", role, label, seconds)

    def create_party_token(self, session_id: str, slot: str, seconds: int) -> str:
        """Return a new token of a slot.

        Earlier ones stay valid until they expire: of a join that was sent twice, either
        response may be the one that arrives.
        """
        _, secret = self._create("pt", Role.PARTY, slot, seconds, session_id, slot)
        return secret

    def keys(self) -> list[Credential]:
        """Return all credentials."""
        return self._credentials.all()

    def revoke(self, credential_id: str) -> None:
        """Revoke a credential; :class:`NotFound` if there is no valid one."""
        if not self._credentials.revoke(credential_id, self._clock.now()):
            raise NotFound("No valid credential has this id.")

    def _create(
        self,
        prefix: str,
        role: Role,
        label: str,
        seconds: int,
        session_id: str | None = None,
        slot: str | None = None,
    ) -> tuple[str, str]:
        secret = f"{prefix}_{secrets.token_urlsafe(32)}"
        now = self._clock.now()
        credential = Credential(
            id=secrets.token_hex(8),
            secret_digest=digest_of(secret),
            role=role.value,
            label=label,
            session_id=session_id,
            slot=slot,
            created_at=now,
            expires_at=now + timedelta(seconds=seconds),
        )
        self._credentials.add(credential)
        return credential.id, secret


def _is_valid(credential: Credential, now: datetime) -> bool:
    return credential.revoked_at is None and now < credential.expires_at
