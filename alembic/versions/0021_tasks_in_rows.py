"""Short tasks are stored in table rows instead of blobs, except tasks of open rounds.

Revision: 0021
Follows: 0020
"""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("tasks", sa.Column("content", sa.LargeBinary, nullable=True))


def downgrade() -> None:
    op.drop_column("tasks", "content")
