"""When a session was purged and deleted; finding rows by the digest of a blob.

Revision: 0004
Follows: 0003
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

TABLES = ("tasks", "contributions", "results")


def upgrade() -> None:
    with op.batch_alter_table("sessions") as batch_op:
        for column in ("purged_at", "deleted_at"):
            batch_op.add_column(
                sa.Column(column, sa.DateTime(timezone=True), nullable=True)
            )
    for table in TABLES:
        op.create_index(op.f(f"ix_{table}_digest"), table, ["digest"], unique=False)


def downgrade() -> None:
    for table in TABLES:
        op.drop_index(op.f(f"ix_{table}_digest"), table)
    with op.batch_alter_table("sessions") as batch_op:
        batch_op.drop_column("deleted_at")
        batch_op.drop_column("purged_at")
