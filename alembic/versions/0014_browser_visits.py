"""Browsers that showed a key, each for some hours.

Revision: 0014
Follows: 0012
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "browser_visits",
        sa.Column("secret_digest", sa.String(length=64), nullable=False),
        sa.Column("credential_id", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["credential_id"],
            ["credentials.id"],
            name=op.f("fk_browser_visits_credential_id_credentials"),
        ),
        sa.PrimaryKeyConstraint("secret_digest", name=op.f("pk_browser_visits")),
    )
    op.create_index(
        op.f("ix_browser_visits_expires_at"), "browser_visits", ["expires_at"]
    )


def downgrade() -> None:
    op.drop_table("browser_visits")
