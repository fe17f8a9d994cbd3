"""Addresses to be told about a session, and what they are to be told.

Revision: 0012
Follows: 0011
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "receivers",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("session_id", sa.String(length=63), nullable=False),
        sa.Column("slot", sa.String(length=63), nullable=True),
        sa.Column("credential_id", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("address", sa.String(length=1000), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_receivers")),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.id"],
            name=op.f("fk_receivers_session_id_sessions"),
        ),
        sa.ForeignKeyConstraint(
            ["credential_id"],
            ["credentials.id"],
            name=op.f("fk_receivers_credential_id_credentials"),
        ),
    )
    op.create_index(op.f("ix_receivers_session_id"), "receivers", ["session_id"])
    op.create_table(
        "notices",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("receiver_id", sa.String(length=32), nullable=False),
        sa.Column("session_id", sa.String(length=63), nullable=False),
        sa.Column("event", sa.String(length=16), nullable=False),
        sa.Column("session_state", sa.String(length=16), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(length=63), nullable=True),
        sa.Column("happened_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("failure", sa.String(length=63), nullable=True),
        sa.Column("lease_token", sa.String(length=32), nullable=True),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("settled_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notices")),
        sa.ForeignKeyConstraint(
            ["receiver_id"],
            ["receivers.id"],
            name=op.f("fk_notices_receiver_id_receivers"),
            ondelete="CASCADE",
        ),
    )
    op.create_index(op.f("ix_notices_receiver_id"), "notices", ["receiver_id"])
    op.create_index(op.f("ix_notices_session_id"), "notices", ["session_id"])
    op.create_index("ix_notices_state_due_at", "notices", ["state", "due_at"])


def downgrade() -> None:
    op.drop_table("notices")
    op.drop_table("receivers")
