"""Lists by last change, and the log of what administrators do.

Revision: 0017
Follows: 0016
"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_INDEXES = {
    "ix_sessions_changed_at": ["changed_at", "id"],
    "ix_sessions_owner_id_changed_at": ["owner_id", "changed_at", "name"],
}


def upgrade() -> None:
    op.create_table(
        "administration",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("line", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_administration")),
    )
    for name, columns in _INDEXES.items():
        op.create_index(name, "sessions", columns)


def downgrade() -> None:
    for name in _INDEXES:
        op.drop_index(name, "sessions")
    op.drop_table("administration")
