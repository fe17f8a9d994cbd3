"""Which institution took a slot, and its signature under the line of the roster.

Revision: 0008
Follows: 0007
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("members") as batch_op:
        batch_op.add_column(sa.Column("institution", sa.String(100), nullable=True))
        batch_op.add_column(sa.Column("identity", sa.String(64), nullable=True))
        batch_op.add_column(sa.Column("signature", sa.String(128), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("members") as batch_op:
        batch_op.drop_column("signature")
        batch_op.drop_column("identity")
        batch_op.drop_column("institution")
