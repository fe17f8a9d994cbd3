"""The tables of 0.3.0, the first release whose schema later releases upgrade.

Earlier revisions belong to releases before 0.3.0, which can no longer be upgraded.

Revision: 0020
Follows: nothing
"""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = None
branch_labels = None
depends_on = None

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(column_0_label)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

ID = sa.String(32)
NAME = sa.String(63)
DIGEST = sa.String(64)
MOMENT = sa.DateTime(timezone=True)


def required(name: str, kind: object, *more: object, **options: object) -> sa.Column:
    return sa.Column(name, kind, *more, nullable=False, **options)


def optional(name: str, kind: object, *more: object, **options: object) -> sa.Column:
    return sa.Column(name, kind, *more, nullable=True, **options)


def session_key() -> sa.Column:
    return sa.Column("session_id", NAME, sa.ForeignKey("sessions.id"), primary_key=True)


def attempt_key() -> list[sa.Column]:
    """Return the columns that tasks and contributions have in common."""
    return [
        session_key(),
        sa.Column("round", sa.Integer, primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True),
        sa.Column("slot", NAME, primary_key=True),
        required("digest", DIGEST, index=True),
        optional("content", sa.LargeBinary),
    ]


sa.Table(
    "installation",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    required("key", DIGEST),
    required("store", ID),
    required("is_marked", sa.Boolean),
)
sa.Table(
    "credentials",
    metadata,
    sa.Column("id", ID, primary_key=True),
    required("secret_digest", DIGEST, unique=True),
    required("role", sa.String(16)),
    required("label", sa.String(200)),
    optional("session_id", NAME, index=True),
    optional("slot", NAME),
    required("created_at", MOMENT),
    required("expires_at", MOMENT),
    optional("revoked_at", MOMENT),
    optional("last_used_at", MOMENT),
    optional("previous_digest", DIGEST, index=True),
    optional("previous_until", MOMENT),
)
sa.Table(
    "sessions",
    metadata,
    sa.Column("id", NAME, primary_key=True),
    required("name", NAME),
    required("owner_id", ID, sa.ForeignKey("credentials.id")),
    required("title", sa.String(200)),
    required("terms", sa.LargeBinary),
    optional("agreement", sa.LargeBinary),
    required("state", sa.String(16), index=True),
    optional("reason", NAME),
    optional("detail", sa.String),
    required("round", sa.Integer),
    required("attempt", sa.Integer),
    optional("stage", NAME),
    required("stage_index", sa.Integer),
    required("n_stages", sa.Integer),
    required("quorum", sa.Integer),
    optional("progress", sa.JSON),
    optional("figures", sa.JSON),
    optional("profiles", sa.JSON),
    optional("chosen", sa.Integer),
    optional("state_digest", DIGEST),
    optional("summary_digest", DIGEST),
    optional("summary_sent_at", MOMENT),
    optional("lease_token", ID),
    optional("lease_until", MOMENT),
    required("step_attempts", sa.Integer, server_default="0"),
    required("deadline", MOMENT),
    required("created_at", MOMENT),
    required("changed_at", MOMENT),
    optional("keep_contributions", sa.Integer),
    optional("keep_session", sa.Integer),
    optional("purged_at", MOMENT),
    optional("deleted_at", MOMENT),
    sa.UniqueConstraint("owner_id", "name"),
    sa.Index("ix_sessions_changed_at", "changed_at", "id"),
    sa.Index("ix_sessions_owner_id_changed_at", "owner_id", "changed_at", "name"),
)
sa.Table(
    "members",
    metadata,
    session_key(),
    sa.Column("slot", NAME, primary_key=True),
    required("row_group", sa.Integer),
    required("column_group", sa.Integer),
    required("state", sa.String(16), server_default="invited"),
    optional("reason", sa.String(200)),
    optional("read_at", MOMENT),
    optional("joined_at", MOMENT),
    optional("n_rows", sa.BigInteger),
    optional("n_columns", sa.Integer),
    optional("x25519", DIGEST),
    optional("ed25519", DIGEST),
    optional("mark", DIGEST),
    optional("institution", sa.String(100)),
    optional("identity", DIGEST),
    optional("signature", sa.String(128)),
    required("joins", sa.Integer, server_default="0"),
    optional("stopped", sa.String(16)),
)
sa.Table(
    "invitations",
    metadata,
    sa.Column("code_digest", DIGEST, primary_key=True),
    required("session_id", NAME, sa.ForeignKey("sessions.id"), index=True),
    required("slot", NAME),
    required("created_at", MOMENT),
    required("expires_at", MOMENT),
    optional("used_at", MOMENT),
    optional("revoked_at", MOMENT),
)
sa.Table("tasks", metadata, *attempt_key(), optional("sent_at", MOMENT))
sa.Table(
    "contributions",
    metadata,
    *attempt_key(),
    required("size", sa.BigInteger),
    required("received_at", MOMENT),
    required("sequence", sa.Integer),
    required("entry", DIGEST),
)
sa.Table(
    "results",
    metadata,
    session_key(),
    sa.Column("slot", NAME, primary_key=True),
    required("digest", DIGEST, index=True),
    optional("sent_at", MOMENT),
)
sa.Table(
    "audit",
    metadata,
    session_key(),
    sa.Column("number", sa.Integer, primary_key=True),
    required("line", sa.String),
)
sa.Table(
    "receivers",
    metadata,
    sa.Column("id", ID, primary_key=True),
    required("session_id", NAME, sa.ForeignKey("sessions.id"), index=True),
    optional("slot", NAME),
    required("credential_id", ID, sa.ForeignKey("credentials.id")),
    required("address", sa.String(320)),
    required("created_at", MOMENT),
)
sa.Table(
    "notices",
    metadata,
    sa.Column("id", ID, primary_key=True),
    required(
        "receiver_id", ID, sa.ForeignKey("receivers.id", ondelete="CASCADE"), index=True
    ),
    required("session_id", NAME, index=True),
    required("event", sa.String(16)),
    required("session_state", sa.String(16)),
    required("round", sa.Integer),
    required("attempt", sa.Integer),
    optional("reason", NAME),
    required("happened_at", MOMENT),
    required("due_at", MOMENT),
    required("state", sa.String(16)),
    required("attempts", sa.Integer),
    optional("failure", NAME),
    optional("lease_token", ID),
    optional("lease_until", MOMENT),
    optional("settled_at", MOMENT),
    sa.Index("ix_notices_state_due_at", "state", "due_at"),
)


def upgrade() -> None:
    metadata.create_all(op.get_bind())


def downgrade() -> None:
    metadata.drop_all(op.get_bind())
