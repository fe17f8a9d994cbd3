"""Making, checking and revoking credentials."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256

from sqlalchemy.orm import Session as Transaction

from analyst_service.auth.repository import CredentialRepository
from analyst_service.clock import Clock
from analyst_service.models import Credential
from clustering_protocols.errors import Forbidden, NotFound, Unauthenticated

_TOKENS_OVERLAP = timedelta(hours=1)
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

    def __init__(self, transaction: Transaction, clock: Clock) -> None:
        self._credentials = CredentialRepository(transaction)
        self._clock = clock

    def authenticate(self, header: str | None) -> Caller:
        """Return the caller of an Authorization header."""
        scheme, _, secret = (header or "").partition(" ")
        if scheme.lower() != "bearer" or not secret:
            raise Unauthenticated(_REFUSED)
        now = self._clock.now()
        found = self._credentials.by_digest(digest_of(secret.strip()), now)
        if found is None or not _is_valid(found, now):
            raise Unauthenticated(_REFUSED)
        return Caller(found.id, Role(found.role), found.session_id, found.slot)

    def create_key(self, role: Role, label: str, seconds: int) -> tuple[str, str]:
        """Return the id and the secret of a new key; the secret is shown only here."""
        return self._create("ck", role, label, seconds)

    def create_party_token(self, session_id: str, slot: str, seconds: int) -> str:
        """Return a new token of a slot.

        Earlier ones stay valid for a while: of a join that was sent twice, either
        response may be the one that arrives.
        """
        until = self._clock.now() + _TOKENS_OVERLAP
        self._credentials.end_tokens(session_id, slot, until)
        _, secret = self._create("pt", Role.PARTY, slot, seconds, session_id, slot)
        return secret

    def rotate(self, credential_id: str, seconds: int, overlap: int) -> str:
        """Return a new secret of a key; what the key owns stays its own.

        Parameters
        ----------
        credential_id : str
        seconds : int
            How long the new secret is valid.
        overlap : int
            Seconds for which the old secret is valid still; 0 ends it at once.

        Raises
        ------
        NotFound
            If no valid key has this id; tokens are rotated by joining again.
        """
        now = self._clock.now()
        found = self._credentials.by_id(credential_id, now)
        if found is None or found.role == Role.PARTY:
            raise NotFound("No valid key has this id.")
        secret = _new_secret("ck")
        found.previous_digest = found.secret_digest
        found.previous_until = now + timedelta(seconds=overlap)
        found.secret_digest = digest_of(secret)
        found.expires_at = now + timedelta(seconds=seconds)
        return secret

    def keys(self) -> list[Credential]:
        """Return all credentials."""
        return self._credentials.all()

    def revoke(self, credential_id: str) -> None:
        """Revoke a credential; :class:`NotFound` if there is no valid one.

        A party's token alone would be renewed by joining again: see
        :meth:`MemberService.shut_out`.
        """
        if not self._credentials.revoke(credential_id, self._clock.now()):
            raise NotFound("No valid credential has this id.")

    def place(self, credential_id: str) -> tuple[str, str] | None:
        """Return the session and slot of a party's token; None for a key."""
        return self._credentials.place(credential_id)

    def revoke_tokens(self, session_id: str, slot: str | None = None) -> int:
        """Revoke a slot's tokens, or all of a session; return how many there were."""
        return self._credentials.revoke_tokens(session_id, slot, self._clock.now())

    def confirm(self, caller: Caller) -> None:
        """Raise :class:`Unauthenticated` if the caller's credential has ended since.

        A request may take minutes: a long poll, or the body of an upload.
        """
        if not self._credentials.is_valid(caller.credential_id, self._clock.now()):
            raise Unauthenticated(_REFUSED)

    def _create(
        self,
        prefix: str,
        role: Role,
        label: str,
        seconds: int,
        session_id: str | None = None,
        slot: str | None = None,
    ) -> tuple[str, str]:
        secret = _new_secret(prefix)
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


def _new_secret(prefix: str) -> str:
    return f"{prefix}_{secrets.token_urlsafe(32)}"


def _is_valid(credential: Credential, now: datetime) -> bool:
    return credential.revoked_at is None and now < credential.expires_at
