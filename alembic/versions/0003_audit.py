"""The audit, and what receipts and deliveries refer to.

Revision: 0003
Follows: 0002
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TIMES = (("sessions", "summary_sent_at"), ("tasks", "sent_at"), ("results", "sent_at"))


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("session_id", sa.String(length=63), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("line", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.id"], name=op.f("fk_audit_session_id_sessions")
        ),
        sa.PrimaryKeyConstraint("session_id", "number", name=op.f("pk_audit")),
    )
    with op.batch_alter_table("contributions") as batch_op:
        batch_op.add_column(sa.Column("sequence", sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column("entry", sa.String(length=64), nullable=True))
    for table, column in TIMES:
        with op.batch_alter_table(table) as batch_op:
            batch_op.add_column(
                sa.Column(column, sa.DateTime(timezone=True), nullable=True)
            )


def downgrade() -> None:
    for table, column in TIMES:
        with op.batch_alter_table(table) as batch_op:
            batch_op.drop_column(column)
    with op.batch_alter_table("contributions") as batch_op:
        batch_op.drop_column("entry")
        batch_op.drop_column("sequence")
    op.drop_table("audit")
