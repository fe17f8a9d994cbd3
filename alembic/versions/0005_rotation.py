"""The secret before a rotation, and until when it is valid.

Revision: 0005
Follows: 0004
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("credentials") as batch_op:
        batch_op.add_column(
            sa.Column("previous_digest", sa.String(length=64), nullable=True)
        )
        batch_op.add_column(
            sa.Column("previous_until", sa.DateTime(timezone=True), nullable=True)
        )
        batch_op.create_index(
            batch_op.f("ix_credentials_previous_digest"),
            ["previous_digest"],
            unique=False,
        )


def downgrade() -> None:
    with op.batch_alter_table("credentials") as batch_op:
        batch_op.drop_index(batch_op.f("ix_credentials_previous_digest"))
        batch_op.drop_column("previous_until")
        batch_op.drop_column("previous_digest")
