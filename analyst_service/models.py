"""The tables of the database, whose rows contain the digests of arrays (blobs).

Short tasks and contributions are stored in their rows instead, so that a commit is the
only disk sync that they need.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from clustering_protocols.wire.states import SlotState

_DIGEST = sa.String(64)
_NAME = sa.String(63)


class UTCDateTime(sa.TypeDecorator[datetime]):
    """A time in UTC; the zone is added on reading if the database does not store it."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> Any:
        """Return the time in UTC; raise ValueError if it has no time zone."""
        del dialect
        if value is not None and value.tzinfo is None:
            raise ValueError("times need a zone")
        return value and value.astimezone(UTC)

    def process_result_value(self, value: Any, dialect: Any) -> datetime | None:
        """Return the time in UTC, with its time zone."""
        del dialect
        if value is None:
            return None
        zoned: datetime = value if value.tzinfo else value.replace(tzinfo=UTC)
        return zoned.astimezone(UTC)


class Base(DeclarativeBase):
    """The base class of all tables, which defines how constraints are named."""

    metadata = sa.MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {datetime: UTCDateTime()}  # noqa: RUF012  SQLAlchemy's own form


def table(kind: type[Base]) -> sa.Table:
    """Return the table of a mapped class, for statements that need no objects.

    Mapping rows to objects would take as long as the database itself.
    """
    return cast(sa.Table, kind.__table__)


class Installation(Base):
    """The key and the store of this database; see :mod:`analyst_service.installation`."""

    __tablename__ = "installation"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)  # always 1
    key: Mapped[str] = mapped_column(_DIGEST)
    store: Mapped[str] = mapped_column(sa.String(32))
    is_marked: Mapped[bool]  # whether the store has been marked


class Credential(Base):
    """A coordinator's or administrator's key, or the token of a slot.

    Only the SHA-256 of the secret is stored.
    """

    __tablename__ = "credentials"

    id: Mapped[str] = mapped_column(sa.String(32), primary_key=True)
    secret_digest: Mapped[str] = mapped_column(_DIGEST, unique=True)
    role: Mapped[str] = mapped_column(sa.String(16))
    label: Mapped[str] = mapped_column(sa.String(200))
    session_id: Mapped[str | None] = mapped_column(_NAME, index=True)
    slot: Mapped[str | None] = mapped_column(_NAME)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    previous_digest: Mapped[str | None] = mapped_column(_DIGEST, index=True)
    previous_until: Mapped[datetime | None]


class Session(Base):
    """A session: its terms, which never change, and its state.

    The owner and the parties of a session use its name, and administrators use its id.
    The two are the same unless a session of another owner already had that id.
    """

    __tablename__ = "sessions"
    __table_args__ = (
        sa.UniqueConstraint("owner_id", "name"),
        # for listing all sessions, or those of one owner, by the time of the last change
        sa.Index("ix_sessions_changed_at", "changed_at", "id"),
        sa.Index("ix_sessions_owner_id_changed_at", "owner_id", "changed_at", "name"),
    )

    id: Mapped[str] = mapped_column(_NAME, primary_key=True)
    name: Mapped[str] = mapped_column(_NAME)
    owner_id: Mapped[str] = mapped_column(sa.ForeignKey("credentials.id"))
    title: Mapped[str] = mapped_column(sa.String(200))
    terms: Mapped[bytes]
    agreement: Mapped[bytes | None]
    state: Mapped[str] = mapped_column(sa.String(16), index=True)
    reason: Mapped[str | None] = mapped_column(sa.String(63))
    detail: Mapped[str | None]
    round: Mapped[int]
    attempt: Mapped[int]
    stage: Mapped[str | None] = mapped_column(_NAME)
    stage_index: Mapped[int]
    n_stages: Mapped[int]
    quorum: Mapped[int]
    progress: Mapped[dict[str, Any] | None] = mapped_column(sa.JSON)
    figures: Mapped[list[dict[str, Any]] | None] = mapped_column(sa.JSON)
    # deferred, because every request loads the row
    profiles: Mapped[list[dict[str, Any]] | None] = mapped_column(
        sa.JSON, deferred=True
    )
    chosen: Mapped[int | None]
    state_digest: Mapped[str | None] = mapped_column(_DIGEST)
    summary_digest: Mapped[str | None] = mapped_column(_DIGEST)
    summary_sent_at: Mapped[datetime | None]
    lease_token: Mapped[str | None] = mapped_column(sa.String(32))
    lease_until: Mapped[datetime | None]
    step_attempts: Mapped[int] = mapped_column(server_default="0")
    deadline: Mapped[datetime]
    created_at: Mapped[datetime]
    changed_at: Mapped[datetime]
    # seconds after the end of the session; None if not in the terms
    keep_contributions: Mapped[int | None]
    keep_session: Mapped[int | None]
    purged_at: Mapped[datetime | None]
    deleted_at: Mapped[datetime | None]


class Member(Base):
    """A slot of a session, with the party that has taken it."""

    __tablename__ = "members"

    session_id: Mapped[str] = mapped_column(
        sa.ForeignKey("sessions.id"), primary_key=True
    )
    slot: Mapped[str] = mapped_column(_NAME, primary_key=True)
    row_group: Mapped[int]
    column_group: Mapped[int]
    state: Mapped[str] = mapped_column(
        sa.String(16), server_default=SlotState.INVITED.value
    )
    reason: Mapped[str | None] = mapped_column(sa.String(200))
    read_at: Mapped[datetime | None]
    joined_at: Mapped[datetime | None]
    n_rows: Mapped[int | None] = mapped_column(sa.BigInteger)
    n_columns: Mapped[int | None]
    x25519: Mapped[str | None] = mapped_column(_DIGEST)
    ed25519: Mapped[str | None] = mapped_column(_DIGEST)
    mark: Mapped[str | None] = mapped_column(_DIGEST)
    institution: Mapped[str | None] = mapped_column(sa.String(100))
    identity: Mapped[str | None] = mapped_column(_DIGEST)
    signature: Mapped[str | None] = mapped_column(sa.String(128))
    joins: Mapped[int] = mapped_column(server_default="0")
    stopped: Mapped[str | None] = mapped_column(sa.String(16))


class Invitation(Base):
    """A one-time code for joining a slot, of which only the SHA-256 is stored."""

    __tablename__ = "invitations"

    code_digest: Mapped[str] = mapped_column(_DIGEST, primary_key=True)
    session_id: Mapped[str] = mapped_column(sa.ForeignKey("sessions.id"), index=True)
    slot: Mapped[str] = mapped_column(_NAME)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class _PerAttempt:
    session_id: Mapped[str] = mapped_column(
        sa.ForeignKey("sessions.id"), primary_key=True
    )
    round: Mapped[int] = mapped_column(primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True)
    slot: Mapped[str] = mapped_column(_NAME, primary_key=True)
    digest: Mapped[str] = mapped_column(_DIGEST, index=True)
    # None if stored as a blob, or if removed after the end of the session
    content: Mapped[bytes | None] = mapped_column(deferred=True)


class Task(_PerAttempt, Base):
    """The task of one slot in one attempt of a round."""

    __tablename__ = "tasks"

    sent_at: Mapped[datetime | None]


class Contribution(_PerAttempt, Base):
    """The contribution of one slot in one attempt of a round."""

    __tablename__ = "contributions"

    size: Mapped[int] = mapped_column(sa.BigInteger)
    received_at: Mapped[datetime]
    sequence: Mapped[int]
    entry: Mapped[str] = mapped_column(_DIGEST)


class Result(Base):
    """The result of a session for one slot."""

    __tablename__ = "results"

    session_id: Mapped[str] = mapped_column(
        sa.ForeignKey("sessions.id"), primary_key=True
    )
    slot: Mapped[str] = mapped_column(_NAME, primary_key=True)
    digest: Mapped[str] = mapped_column(_DIGEST, index=True)
    sent_at: Mapped[datetime | None]


class AuditLine(Base):
    """A line of a session's audit; see :mod:`clustering_protocols.records.hash_chain`."""

    __tablename__ = "audit"

    session_id: Mapped[str] = mapped_column(
        sa.ForeignKey("sessions.id"), primary_key=True
    )
    number: Mapped[int] = mapped_column(primary_key=True)
    line: Mapped[str]


class Receiver(Base):
    """A mail address to which notices about a session are sent."""

    __tablename__ = "receivers"

    id: Mapped[str] = mapped_column(sa.String(32), primary_key=True)
    session_id: Mapped[str] = mapped_column(sa.ForeignKey("sessions.id"), index=True)
    slot: Mapped[str | None] = mapped_column(_NAME)  # None for the coordinator
    credential_id: Mapped[str] = mapped_column(sa.ForeignKey("credentials.id"))
    address: Mapped[str] = mapped_column(sa.String(320))  # empty after removal
    created_at: Mapped[datetime]


class Notice(Base):
    """A message to a receiver, with its due time and the state of its delivery."""

    __tablename__ = "notices"
    __table_args__ = (sa.Index("ix_notices_state_due_at", "state", "due_at"),)

    id: Mapped[str] = mapped_column(sa.String(32), primary_key=True)
    receiver_id: Mapped[str] = mapped_column(
        sa.ForeignKey("receivers.id", ondelete="CASCADE"), index=True
    )
    session_id: Mapped[str] = mapped_column(_NAME, index=True)
    event: Mapped[str] = mapped_column(sa.String(16))
    session_state: Mapped[str] = mapped_column(sa.String(16))
    round: Mapped[int]
    attempt: Mapped[int]
    reason: Mapped[str | None] = mapped_column(sa.String(63))
    happened_at: Mapped[datetime]
    due_at: Mapped[datetime]
    state: Mapped[str] = mapped_column(sa.String(16))
    attempts: Mapped[int]
    failure: Mapped[str | None] = mapped_column(sa.String(63))
    lease_token: Mapped[str | None] = mapped_column(sa.String(32))
    lease_until: Mapped[datetime | None]
    settled_at: Mapped[datetime | None]
