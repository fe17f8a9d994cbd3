"""First schema.

Revision: 0001
Follows: nothing
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "credentials",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("secret_digest", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("label", sa.String(length=200), nullable=False),
        sa.Column("session_id", sa.String(length=63), nullable=True),
        sa.Column("slot", sa.String(length=63), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_credentials")),
        sa.UniqueConstraint("secret_digest", name=op.f("uq_credentials_secret_digest")),
    )
    with op.batch_alter_table("credentials") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_credentials_session_id"), ["session_id"], unique=False
        )

    op.create_table(
        "sessions",
        sa.Column("id", sa.String(length=63), nullable=False),
        sa.Column("owner_id", sa.String(length=32), nullable=False),
        sa.Column("title", sa.String(length=200), nullable=False),
        sa.Column("terms", sa.LargeBinary(), nullable=False),
        sa.Column("agreement", sa.LargeBinary(), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.String(length=63), nullable=True),
        sa.Column("detail", sa.String(), nullable=True),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("stage", sa.String(length=63), nullable=True),
        sa.Column("stage_index", sa.Integer(), nullable=False),
        sa.Column("n_stages", sa.Integer(), nullable=False),
        sa.Column("quorum", sa.Integer(), nullable=False),
        sa.Column("state_digest", sa.String(length=64), nullable=True),
        sa.Column("summary_digest", sa.String(length=64), nullable=True),
        sa.Column("deadline", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["owner_id"],
            ["credentials.id"],
            name=op.f("fk_sessions_owner_id_credentials"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
    )
    with op.batch_alter_table("sessions") as batch_op:
        batch_op.create_index(batch_op.f("ix_sessions_state"), ["state"], unique=False)

    op.create_table(
        "contributions",
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("session_id", sa.String(length=63), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("slot", sa.String(length=63), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.id"],
            name=op.f("fk_contributions_session_id_sessions"),
        ),
        sa.PrimaryKeyConstraint(
            "session_id", "round", "attempt", "slot", name=op.f("pk_contributions")
        ),
    )
    op.create_table(
        "invitations",
        sa.Column("code_digest", sa.String(length=64), nullable=False),
        sa.Column("session_id", sa.String(length=63), nullable=False),
        sa.Column("slot", sa.String(length=63), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.id"],
            name=op.f("fk_invitations_session_id_sessions"),
        ),
        sa.PrimaryKeyConstraint("code_digest", name=op.f("pk_invitations")),
    )
    with op.batch_alter_table("invitations") as batch_op:
        batch_op.create_index(
            batch_op.f("ix_invitations_session_id"), ["session_id"], unique=False
        )

    op.create_table(
        "members",
        sa.Column("session_id", sa.String(length=63), nullable=False),
        sa.Column("slot", sa.String(length=63), nullable=False),
        sa.Column("row_group", sa.Integer(), nullable=False),
        sa.Column("column_group", sa.Integer(), nullable=False),
        sa.Column("joined_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("n_rows", sa.BigInteger(), nullable=True),
        sa.Column("n_columns", sa.Integer(), nullable=True),
        sa.Column("x25519", sa.String(length=64), nullable=True),
        sa.Column("ed25519", sa.String(length=64), nullable=True),
        sa.Column("mark", sa.String(length=64), nullable=True),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.id"], name=op.f("fk_members_session_id_sessions")
        ),
        sa.PrimaryKeyConstraint("session_id", "slot", name=op.f("pk_members")),
    )
    op.create_table(
        "results",
        sa.Column("session_id", sa.String(length=63), nullable=False),
        sa.Column("slot", sa.String(length=63), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.id"], name=op.f("fk_results_session_id_sessions")
        ),
        sa.PrimaryKeyConstraint("session_id", "slot", name=op.f("pk_results")),
    )
    op.create_table(
        "tasks",
        sa.Column("session_id", sa.String(length=63), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("slot", sa.String(length=63), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.id"], name=op.f("fk_tasks_session_id_sessions")
        ),
        sa.PrimaryKeyConstraint(
            "session_id", "round", "attempt", "slot", name=op.f("pk_tasks")
        ),
    )


def downgrade() -> None:
    op.drop_table("tasks")
    op.drop_table("results")
    op.drop_table("members")
    with op.batch_alter_table("invitations") as batch_op:
        batch_op.drop_index(batch_op.f("ix_invitations_session_id"))

    op.drop_table("invitations")
    op.drop_table("contributions")
    with op.batch_alter_table("sessions") as batch_op:
        batch_op.drop_index(batch_op.f("ix_sessions_state"))

    op.drop_table("sessions")
    with op.batch_alter_table("credentials") as batch_op:
        batch_op.drop_index(batch_op.f("ix_credentials_session_id"))

    op.drop_table("credentials")
