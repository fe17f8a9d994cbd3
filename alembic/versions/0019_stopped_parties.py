"""Why a party stopped for good, in one word.

Revision: 0019
Follows: 0018
"""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("members") as batch_op:
        batch_op.add_column(sa.Column("stopped", sa.String(16), nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("members") as batch_op:
        batch_op.drop_column("stopped")
