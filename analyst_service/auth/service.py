"""Making, checking and revoking credentials."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.clock import Clock
from analyst_service.monitoring.administrative_acts import (
    SERVICE,
    Act,
    Actor,
    log_when_committed,
)
from analyst_service.storage.models import (
    Credential,
    Principal,
    Receiver,
    Session,
    UTCDateTime,
    table,
)
from analyst_service.transactions.batching import outcomes
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import (
    CoterieError,
    Forbidden,
    NotFound,
    Unauthenticated,
)

_TOKENS_OVERLAP = timedelta(hours=1)
_ISSUER = "coterie"  # of principals that only keys of this service name
_REFUSED = "It is missing, unknown, expired or revoked."


class CredentialRecord(NamedTuple):
    """What is known of a credential that somebody shows."""

    id: str
    principal_id: str | None
    session_id: str | None
    slot: str | None
    expires_at: datetime
    revoked_at: datetime | None
    role: str | None


# Two that most requests ask, written once: to write one costs more than to send it.
_DIGESTS: sa.BindParameter[Any] = sa.bindparam("digests", expanding=True)
_ID = sa.bindparam("credential_id", type_=sa.String)
_NOW = sa.bindparam("now", type_=UTCDateTime())


_CREDENTIALS, _PRINCIPALS = table(Credential), table(Principal)


def _select_presented(
    digest: sa.Column[Any], *conditions: sa.ColumnElement[bool]
) -> sa.Select[Any]:
    return (
        sa.select(
            digest, *(_CREDENTIALS.c[name] for name in CredentialRecord._fields[:-1])
        )
        .add_columns(_PRINCIPALS.c.role)
        .select_from(_CREDENTIALS.outerjoin(_PRINCIPALS))
        .where(digest.in_(_DIGESTS), *conditions)
    )


_BY_DIGEST = sa.union_all(
    _select_presented(_CREDENTIALS.c.secret_digest),
    _select_presented(
        _CREDENTIALS.c.previous_digest, _CREDENTIALS.c.previous_until > _NOW
    ),
)
_VALID = sa.and_(
    Credential.id == _ID, Credential.revoked_at.is_(None), Credential.expires_at > _NOW
)
_LOCKED = sa.select(Credential).where(_VALID).with_for_update()
_ARE_VALID = sa.select(_CREDENTIALS.c.id).where(
    _CREDENTIALS.c.id.in_(sa.bindparam("credential_ids", expanding=True)),
    _CREDENTIALS.c.revoked_at.is_(None),
    _CREDENTIALS.c.expires_at > _NOW,
)


class CredentialRefused(Unauthenticated, problem=Problem.UNAUTHENTICATED):
    """A credential that was shown and does not count.

    credential_id: its id, where it did once; None for what is unknown.
    """

    def __init__(self, credential_id: str | None = None) -> None:
        super().__init__(_REFUSED)
        self.credential_id = credential_id


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
    principal_id: str | None = None
    session_id: str | None = None
    slot: str | None = None

    def require(self, *roles: Role) -> None:
        """Raise :class:`Forbidden` unless the caller has one of these roles."""
        if self.role not in roles:
            raise Forbidden(f"It needs the role {' or '.join(roles)}.")


def build_ended_refusal() -> Unauthenticated:
    """Return the refusal of a credential that was valid when the request came."""
    return Unauthenticated(_REFUSED)


def digest_of(secret: str) -> str:
    """Return what is kept of a secret. It is random, so a plain hash suffices."""
    return sha256(secret.encode()).hexdigest()


def _shown_in(header: str | None) -> str | None:
    """Return the digest of the secret in an Authorization header, if there is one."""
    scheme, _, secret = (header or "").partition(" ")
    shown = scheme.lower() == "bearer" and secret
    return digest_of(secret.strip()) if shown else None


def caller_of(
    credential: Credential | CredentialRecord, role: str | None, now: datetime
) -> Caller:
    """Return who shows a credential; :class:`CredentialRefused` if it has ended.

    ``role`` is its principal's; None for a party's token, which has no principal.
    """
    if credential.revoked_at is not None or credential.expires_at <= now:
        raise CredentialRefused(credential.id)
    return Caller(
        credential.id,
        Role.PARTY if role is None else Role(role),
        credential.principal_id,
        credential.session_id,
        credential.slot,
    )


class AuthService:
    """Credentials and their principals in one transaction.

    Anyone who makes, renews or ends a key is named in the log: ``by``.
    """

    def __init__(
        self, transaction: Transaction, clock: Clock, by: Actor = SERVICE
    ) -> None:
        self._transaction = transaction
        self._clock = clock
        self._by = by

    # Who calls

    def authenticate(self, header: str | None) -> Caller:
        """Return the caller of an Authorization header."""
        (found,) = self.authenticate_all([header])
        if isinstance(found, CoterieError):
            raise found
        return found

    def authenticate_all(
        self, headers: Sequence[str | None]
    ) -> list[Caller | CoterieError]:
        """Return the caller of each Authorization header, or why it is refused."""
        now = self._clock.now()
        digests = [_shown_in(header) for header in headers]
        shown = {digest for digest in digests if digest is not None}
        known: dict[str, CredentialRecord] = {}
        if shown:
            asked = {"digests": list(shown), "now": now}
            found = self._transaction.execute(_BY_DIGEST, asked)
            known = {row[0]: CredentialRecord(*row[1:]) for row in found}

        def caller(digest: str | None) -> Caller:
            if digest is None:
                raise Unauthenticated(_REFUSED)
            if (found := known.get(digest)) is None:
                raise CredentialRefused
            return caller_of(found, found.role, now)

        return outcomes(caller, digests)

    def still_valid(self, callers: Iterable[Caller]) -> set[str]:
        """Return the ids of those credentials of callers that have not ended since.

        A request may take minutes: a long poll, or the body of an upload. Takes no lock.
        """
        ids = {caller.credential_id for caller in callers}
        asked = {"credential_ids": list(ids), "now": self._clock.now()}
        return set(self._transaction.scalars(_ARE_VALID, asked))

    def actor(self, caller: Caller) -> Actor:
        """Return whom the log names for a caller."""
        found = self._transaction.get(Credential, caller.credential_id)
        label = "" if found is None else found.label
        return Actor(caller.principal_id or caller.credential_id, label)

    def note_uses(self, last: Mapping[str, datetime]) -> None:
        """Write when credentials were last shown; another process may know later."""
        for credential_id, at in sorted(last.items()):
            earlier = sa.or_(
                Credential.last_used_at.is_(None), Credential.last_used_at < at
            )
            self._transaction.execute(
                sa.update(Credential)
                .where(Credential.id == credential_id, earlier)
                .values(last_used_at=at)
                .execution_options(synchronize_session=False)
            )

    # Keys

    def create_key(self, role: Role, label: str, seconds: int) -> tuple[str, str]:
        """Return the id and the secret of a new key; the secret is shown only here.

        Its principal is known by this key alone, and is named by it.
        """
        key_id = _new_id()
        self._transaction.add(
            Principal(id=key_id, issuer=_ISSUER, subject=key_id, role=role.value)
        )
        self._transaction.flush()
        secret = _new_secret("ck")
        self._add(key_id, secret, label, seconds, principal_id=key_id)
        self._note(Act.KEY_MADE, key=key_id, role=role.value, made_for=label)
        return key_id, secret

    def rotate(self, credential_id: str, seconds: int, overlap: int) -> str:
        """Return a new secret of a key; what the key owns stays its own.

        seconds: how long the new secret is valid.
        overlap: seconds for which the old secret is valid still; 0 ends it at once.

        Raises NotFound if no valid key has this id; tokens are rotated by joining
            again.
        """
        now = self._clock.now()
        asked = {"credential_id": credential_id, "now": now}
        found = self._transaction.scalar(_LOCKED, asked)
        if found is None or found.principal_id is None:
            raise NotFound("No valid key has this id.")
        secret = _new_secret("ck")
        found.previous_digest = found.secret_digest
        found.previous_until = now + timedelta(seconds=overlap)
        found.secret_digest = digest_of(secret)
        found.expires_at = now + timedelta(seconds=seconds)
        self._note(Act.KEY_ROTATED, key=credential_id)
        return secret

    def keys(self, role: Role | None = None) -> list[tuple[Credential, Role]]:
        """Return all keys, the newest first; where a role is given, those of it."""
        query = sa.select(Credential, Principal.role).join(Principal)
        found = self._transaction.execute(query.order_by(Credential.created_at.desc()))
        return [(row[0], Role(row[1])) for row in found if role in {None, row[1]}]

    def revoke(self, credential_id: str) -> None:
        """Revoke a credential; :class:`NotFound` if there is no valid one.

        A party's token alone would be renewed by joining again: see
        :meth:`MemberService.shut_out`.
        """
        if not self._revoke(Credential.id == credential_id):
            raise NotFound("No valid credential has this id.")
        self._note(Act.KEY_REVOKED, key=credential_id)

    def _revoke(self, *conditions: sa.ColumnElement[bool]) -> int:
        """Revoke credentials; return how many were valid so far."""
        revoked = self._transaction.execute(
            sa.update(Credential)
            .where(*conditions, Credential.revoked_at.is_(None))
            .values(revoked_at=self._clock.now())
            .returning(Credential.id)
        )
        return len(revoked.all())

    # Tokens of parties

    def create_party_token(self, session_id: str, slot: str, seconds: int) -> str:
        """Return a new token of a slot.

        Earlier ones stay valid for a while: of a join that was sent twice, either
        response may be the one that arrives.
        """
        until = self._clock.now() + _TOKENS_OVERLAP
        self._transaction.execute(
            sa.update(Credential)
            .where(
                Credential.session_id == session_id,
                Credential.slot == slot,
                Credential.expires_at > until,
            )
            .values(expires_at=until)
        )
        secret = _new_secret("pt")
        self._add(_new_id(), secret, slot, seconds, session_id=session_id, slot=slot)
        return secret

    def tokens(self) -> list[tuple[Credential, Role]]:
        """Return the tokens of parties, the newest first; not of deleted sessions."""
        query = (
            sa.select(Credential)
            .join(Session, Session.id == Credential.session_id)
            .where(Session.deleted_at.is_(None))
            .order_by(Credential.created_at.desc())
        )
        return [(found, Role.PARTY) for found in self._transaction.scalars(query)]

    def place(self, credential_id: str) -> tuple[str, str] | None:
        """Return the session and slot of a party's token; None for a key."""
        found = self._transaction.get(Credential, credential_id)
        if found is None or found.session_id is None or found.slot is None:
            return None
        return found.session_id, found.slot

    def revoke_tokens(self, session_id: str, slot: str | None = None) -> int:
        """Revoke a slot's tokens, or all of a session; return how many there were."""
        own = sa.true() if slot is None else Credential.slot == slot
        return self._revoke(Credential.session_id == session_id, own)

    def has_tokens(self, before: datetime) -> bool:
        """Return whether there are tokens that :meth:`remove_tokens` would forget."""
        query = sa.select(Credential.id).where(_is_left(before)).limit(1)
        return self._transaction.scalar(query) is not None

    def remove_tokens(self, before: datetime) -> None:
        """Forget the tokens of sessions that were deleted by a time."""
        self._transaction.execute(
            sa.delete(Credential)
            .where(_is_left(before))
            .execution_options(synchronize_session=False)
        )

    def _note(self, act: Act, **fields: str) -> None:
        log_when_committed(self._transaction, act, self._by, **fields)

    def _add(
        self, credential_id: str, secret: str, label: str, seconds: int, **of: str
    ) -> None:
        now = self._clock.now()
        self._transaction.add(
            Credential(
                id=credential_id,
                secret_digest=digest_of(secret),
                label=label,
                created_at=now,
                expires_at=now + timedelta(seconds=seconds),
                **of,
            )
        )
        self._transaction.flush()


def _is_left(before: datetime) -> sa.ColumnElement[bool]:
    """Return the condition of a token whose session was deleted by a time.

    Where it left an address, that goes first: a notice may be on its way.
    """
    gone = sa.select(Session.id).where(Session.deleted_at <= before)
    holds = sa.exists().where(Receiver.credential_id == Credential.id)
    return sa.and_(Credential.session_id.in_(gone), ~holds)


def _new_id() -> str:
    return secrets.token_hex(8)


def _new_secret(prefix: str) -> str:
    return f"{prefix}_{secrets.token_urlsafe(32)}"
