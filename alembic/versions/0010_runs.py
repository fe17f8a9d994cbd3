"""Figures of a session's runs, and which of them counts.

Revision: 0010
Follows: 0009
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("sessions") as batch_op:
        batch_op.add_column(sa.Column("figures", sa.JSON(), nullable=True))
        batch_op.add_column(sa.Column("chosen", sa.Integer(), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("sessions") as batch_op:
        batch_op.drop_column("chosen")
        batch_op.drop_column("figures")
