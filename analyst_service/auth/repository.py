"""Queries on credentials."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.storage.models import (
    Credential,
    Principal,
    Receiver,
    Session,
    UTCDateTime,
    table,
)

_KEYS = sa.select(Credential, Principal).join(Principal)
_TOKENS = (
    sa.select(Credential)
    .join(Session, Session.id == Credential.session_id)
    .where(Session.deleted_at.is_(None))
)
_NEWEST = Credential.created_at.desc()


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


class CredentialRepository:
    """Credentials and their principals in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def add(self, stored: Credential | Principal) -> None:
        """Store a credential or a principal."""
        self._transaction.add(stored)
        self._transaction.flush()

    def by_digest(
        self, digests: Collection[str], now: datetime
    ) -> dict[str, CredentialRecord]:
        """Return the credentials of secrets' digests, or of their last secrets'."""
        asked = {"digests": list(digests), "now": now}
        found = self._transaction.execute(_BY_DIGEST, asked)
        return {row[0]: CredentialRecord(*row[1:]) for row in found}

    def by_id(self, credential_id: str, now: datetime) -> Credential | None:
        """Return a credential that is valid now, locked."""
        asked = {"credential_id": credential_id, "now": now}
        return self._transaction.scalar(_LOCKED, asked)

    def valid(self, credential_ids: Collection[str], now: datetime) -> set[str]:
        """Return which of these credentials are valid now; takes no lock."""
        asked = {"credential_ids": list(credential_ids), "now": now}
        return set(self._transaction.scalars(_ARE_VALID, asked))

    def list_with_owners(self) -> list[tuple[Credential, Principal]]:
        """Return all keys and whose they are, the newest first."""
        found = self._transaction.execute(_KEYS.order_by(_NEWEST))
        return [(row[0], row[1]) for row in found]

    def tokens(self) -> list[Credential]:
        """Return the tokens of sessions that are not deleted, the newest first."""
        return list(self._transaction.scalars(_TOKENS.order_by(_NEWEST)))

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

    def label(self, credential_id: str) -> str:
        """Return for whom a credential is."""
        found = self._transaction.get(Credential, credential_id)
        return "" if found is None else found.label

    def place(self, credential_id: str) -> tuple[str, str] | None:
        """Return the session and slot of a party's token; None for a key."""
        found = self._transaction.get(Credential, credential_id)
        if found is None or found.session_id is None or found.slot is None:
            return None
        return found.session_id, found.slot


def _is_left(before: datetime) -> sa.ColumnElement[bool]:
    """Return the condition of a token whose session was deleted by a time.

    Where it left an address, that goes first: a notice may be on its way.
    """
    gone = sa.select(Session.id).where(Session.deleted_at <= before)
    holds = sa.exists().where(Receiver.credential_id == Credential.id)
    return sa.and_(Credential.session_id.in_(gone), ~holds)
