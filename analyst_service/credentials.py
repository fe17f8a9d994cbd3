"""Issue, verify and revoke the keys of coordinators and the tokens of parties."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Any

import sqlalchemy as sa

from analyst_service.database import Transaction
from analyst_service.logs import SERVICE, Act, Actor, log_when_committed
from analyst_service.models import Credential, Receiver, Session, UTCDateTime, table
from analyst_service.waiting import try_each
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import (
    CoterieError,
    Forbidden,
    NotFound,
    Unauthenticated,
)

_TOKENS_OVERLAP = timedelta(hours=1)
_REFUSED = "It is missing, unknown, expired or revoked."


class Role(StrEnum):
    """The role that a credential gives its holder."""

    ADMINISTRATOR = "administrator"
    COORDINATOR = "coordinator"
    PARTY = "party"


@dataclass(frozen=True, slots=True)
class Caller:
    """The authenticated sender of a request: holder of a key, or party in a slot."""

    credential_id: str
    role: Role
    session_id: str | None = None
    slot: str | None = None

    def require_role(self, *roles: Role) -> None:
        """Raise :class:`Forbidden` if the caller has none of these roles."""
        if self.role not in roles:
            raise Forbidden(f"This request needs the role {' or '.join(roles)}.")


class CredentialRefused(Unauthenticated, problem=Problem.UNAUTHENTICATED):
    """The request's credential is missing or not valid.

    credential_id: the id of a credential that has expired or was revoked; None for an
        unknown one.
    """

    def __init__(self, credential_id: str | None = None) -> None:
        super().__init__(_REFUSED)
        self.credential_id = credential_id


# Built once, because every request executes these statements.
_CREDENTIALS = table(Credential)
_NOW = sa.bindparam("now", type_=UTCDateTime())


def _select_by_digest(
    digest: sa.Column[Any], *conditions: sa.ColumnElement[bool]
) -> sa.Select[Any]:
    return sa.select(
        digest.label("digest"),
        *_CREDENTIALS.c["id", "role", "session_id", "slot", "expires_at", "revoked_at"],
    ).where(digest.in_(sa.bindparam("digests", expanding=True)), *conditions)


_BY_DIGEST = sa.union_all(
    _select_by_digest(_CREDENTIALS.c.secret_digest),
    _select_by_digest(
        _CREDENTIALS.c.previous_digest, _CREDENTIALS.c.previous_until > _NOW
    ),
)
_ARE_VALID = sa.select(_CREDENTIALS.c.id).where(
    _CREDENTIALS.c.id.in_(sa.bindparam("credential_ids", expanding=True)),
    _CREDENTIALS.c.revoked_at.is_(None),
    _CREDENTIALS.c.expires_at > _NOW,
)


def hash_secret(secret: str) -> str:
    """Return the stored form of a secret. Secrets are random, so a plain hash suffices."""
    return sha256(secret.encode()).hexdigest()


def authenticate(
    db: Transaction, headers: Sequence[str | None]
) -> list[Caller | CoterieError]:
    """Return the caller that each Authorization header identifies, or an exception."""
    now = db.now()
    parts = [(header or "").partition(" ") for header in headers]
    digests = [
        hash_secret(secret.strip()) if scheme.lower() == "bearer" and secret else None
        for scheme, _, secret in parts
    ]
    present = {digest for digest in digests if digest is not None}
    records = {}
    if present:  # no query for requests without a credential
        rows = db.execute(_BY_DIGEST, {"digests": list(present), "now": now})
        records = {row.digest: row for row in rows}

    def identify_caller(digest: str | None) -> Caller:
        if (row := records.get(digest)) is None:
            raise CredentialRefused
        if row.revoked_at is not None or row.expires_at <= now:
            raise CredentialRefused(row.id)
        return Caller(row.id, Role(row.role), row.session_id, row.slot)

    return try_each(identify_caller, digests)


def find_valid_ids(db: Transaction, callers: Iterable[Caller]) -> set[str]:
    """Return the ids of the callers' credentials that are still valid, without a lock.

    Credentials are checked again at the end of a long poll or an upload, which may take
    minutes.
    """
    ids = {caller.credential_id for caller in callers}
    return set(db.scalars(_ARE_VALID, {"credential_ids": list(ids), "now": db.now()}))


def find_actor(db: Transaction, caller: Caller) -> Actor:
    """Return the actor under which the caller's actions are logged."""
    credential = db.get(Credential, caller.credential_id)
    label = "" if credential is None else credential.label
    return Actor(caller.credential_id, label)


def record_last_uses(db: Transaction, last: Mapping[str, datetime]) -> None:
    """Store when each credential was last used, unless a later use is already stored."""
    for credential_id, at in sorted(last.items()):
        earlier = sa.or_(
            Credential.last_used_at.is_(None), Credential.last_used_at < at
        )
        db.execute(
            sa.update(Credential)
            .where(Credential.id == credential_id, earlier)
            .values(last_used_at=at)
            .execution_options(synchronize_session=False)
        )


def create_key(
    db: Transaction, role: Role, label: str, seconds: int, by: Actor = SERVICE
) -> tuple[str, str]:
    """Create a key; return its id and its secret.

    The secret is not stored, so it cannot be read again.

    seconds: how long the key is valid.
    by: the actor to name in the log.
    """
    secret = _generate_secret("ck")
    key_id = _add_credential(db, role, secret, label, seconds)
    log_when_committed(
        db, Act.KEY_MADE, by, key=key_id, role=role.value, made_for=label
    )
    return key_id, secret


def rotate_key(
    db: Transaction,
    credential_id: str,
    seconds: int,
    overlap: int,
    by: Actor = SERVICE,
) -> str:
    """Replace the secret of a key and return the new one; its owner keeps the sessions.

    seconds: how long the new secret is valid.
    overlap: how long (seconds) the old secret remains valid; 0 ends it immediately.
    by: the actor to name in the log.

    Raises NotFound if no valid key has this id. Tokens cannot be rotated: a party
    renews its token by joining again.
    """
    now = db.now()
    key = db.scalar(
        sa.select(Credential)
        .where(
            Credential.id == credential_id,
            Credential.role != Role.PARTY.value,
            Credential.revoked_at.is_(None),
            Credential.expires_at > now,
        )
        .with_for_update()
    )
    if key is None:
        raise NotFound("No valid key has this id.")
    secret = _generate_secret("ck")
    key.previous_digest = key.secret_digest
    key.previous_until = now + timedelta(seconds=overlap)
    key.secret_digest = hash_secret(secret)
    key.expires_at = now + timedelta(seconds=seconds)
    log_when_committed(db, Act.KEY_ROTATED, by, key=credential_id)
    return secret


def list_keys(db: Transaction, role: Role | None = None) -> Sequence[Credential]:
    """Return all keys, or only those with the given role, newest first."""
    roles = set(Role) - {Role.PARTY} if role is None else {role}
    query = sa.select(Credential).where(Credential.role.in_(r.value for r in roles))
    return db.scalars(query.order_by(Credential.created_at.desc())).all()


def revoke_credential(db: Transaction, credential_id: str, by: Actor = SERVICE) -> None:
    """Revoke a key or token, expired or not, and end the notices to its addresses.

    Raises NotFound if there is nothing to revoke.

    A party whose token was revoked can get another one by joining again. Use
    :func:`analyst_service.members.revoke_access` to prevent that.
    """
    if not _revoke_matching(db, Credential.id == credential_id):
        raise NotFound("No credential has this id, or it was already revoked.")
    log_when_committed(db, Act.KEY_REVOKED, by, key=credential_id)


def _revoke_matching(db: Transaction, *conditions: sa.ColumnElement[bool]) -> int:
    """Revoke the credentials that meet these conditions; return how many were revoked."""
    revoked = db.execute(
        sa.update(Credential)
        .where(*conditions, Credential.revoked_at.is_(None))
        .values(revoked_at=db.now())
        .returning(Credential.id)
    )
    return len(revoked.all())


def create_party_token(
    db: Transaction, session_id: str, slot: str, seconds: int
) -> str:
    """Create a token for the party in a slot, and return its secret.

    Earlier tokens of the slot remain valid for up to an hour, because a party that sent
    its join request twice may have received only one of the two responses.

    seconds: how long the new token is valid.
    """
    until = db.now() + _TOKENS_OVERLAP
    db.execute(
        sa.update(Credential)
        .where(
            Credential.session_id == session_id,
            Credential.slot == slot,
            Credential.expires_at > until,
        )
        .values(expires_at=until)
    )
    secret = _generate_secret("pt")
    _add_credential(
        db, Role.PARTY, secret, slot, seconds, session_id=session_id, slot=slot
    )
    return secret


def list_tokens(db: Transaction) -> Sequence[Credential]:
    """Return the parties' tokens, newest first, except those of deleted sessions."""
    query = (
        sa.select(Credential)
        .join(Session, Session.id == Credential.session_id)
        .where(Session.deleted_at.is_(None))
        .order_by(Credential.created_at.desc())
    )
    return db.scalars(query).all()


def revoke_tokens(db: Transaction, session_id: str, slot: str | None = None) -> int:
    """Revoke the tokens of a slot, or of a whole session; return how many were revoked."""
    is_of_slot = sa.true() if slot is None else Credential.slot == slot
    return _revoke_matching(db, Credential.session_id == session_id, is_of_slot)


def remove_old_tokens(db: Transaction, before: datetime) -> None:
    """Delete the tokens of sessions that were deleted before this time.

    A token is kept as long as a mail address that was added with it, because a notice
    may still be on its way.
    """
    deleted = sa.select(Session.id).where(Session.deleted_at <= before)
    has_receiver = sa.exists().where(Receiver.credential_id == Credential.id)
    db.execute(
        sa.delete(Credential)
        .where(Credential.session_id.in_(deleted), ~has_receiver)
        .execution_options(synchronize_session=False)
    )


def _add_credential(
    db: Transaction, role: Role, secret: str, label: str, seconds: int, **place: str
) -> str:
    """Store a credential with a new id, which is returned."""
    now = db.now()
    credential = Credential(
        id=secrets.token_hex(8),
        secret_digest=hash_secret(secret),
        role=role.value,
        label=label,
        created_at=now,
        expires_at=now + timedelta(seconds=seconds),
        **place,
    )
    db.add(credential)
    db.flush()
    return credential.id


def _generate_secret(prefix: str) -> str:
    return f"{prefix}_{secrets.token_urlsafe(32)}"
