"""Whose keys and ids are whose, and where the party of each slot stands.

Revision: 0009
Follows: 0008
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

KEY = "fk_credentials_principal_id_principals"
OWNER = "fk_sessions_owner_id_principals"
NAME = "uq_sessions_owner_id"
OWNER_BEFORE = "fk_sessions_owner_id_credentials"


def upgrade() -> None:
    op.create_table(
        "principals",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("subject", sa.String(length=200), nullable=False),
        sa.Column("issuer", sa.String(length=200), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_principals")),
        sa.UniqueConstraint("issuer", "subject", name=op.f("uq_principals_issuer")),
    )
    op.execute(
        "INSERT INTO principals (id, subject, issuer, role) "
        "SELECT id, id, 'coterie', role FROM credentials WHERE role <> 'party'"
    )
    with op.batch_alter_table("sessions") as batch_op:
        batch_op.drop_constraint(OWNER_BEFORE, type_="foreignkey")
        batch_op.create_foreign_key(OWNER, "principals", ["owner_id"], ["id"])
        batch_op.add_column(sa.Column("name", sa.String(length=63), nullable=True))
    op.execute("UPDATE sessions SET name = id")
    with op.batch_alter_table("sessions") as batch_op:
        batch_op.alter_column("name", nullable=False)
        batch_op.create_unique_constraint(NAME, ["owner_id", "name"])
    with op.batch_alter_table("credentials") as batch_op:
        batch_op.add_column(
            sa.Column("principal_id", sa.String(length=32), nullable=True)
        )
        batch_op.create_foreign_key(KEY, "principals", ["principal_id"], ["id"])
        batch_op.drop_column("role")
    op.execute(
        "UPDATE credentials SET principal_id = id "
        "WHERE id IN (SELECT id FROM principals)"
    )
    with op.batch_alter_table("members") as batch_op:
        batch_op.add_column(
            sa.Column(
                "state", sa.String(length=16), server_default="invited", nullable=False
            )
        )
        batch_op.add_column(sa.Column("reason", sa.String(length=200), nullable=True))
    op.execute("UPDATE members SET state = 'joined' WHERE joined_at IS NOT NULL")


def downgrade() -> None:
    with op.batch_alter_table("members") as batch_op:
        batch_op.drop_column("reason")
        batch_op.drop_column("state")
    with op.batch_alter_table("credentials") as batch_op:
        batch_op.add_column(
            sa.Column(
                "role", sa.String(length=16), server_default="party", nullable=False
            )
        )
    op.execute(
        "UPDATE credentials SET role = (SELECT role FROM principals "
        "WHERE principals.id = credentials.principal_id) "
        "WHERE principal_id IS NOT NULL"
    )
    with op.batch_alter_table("credentials") as batch_op:
        batch_op.alter_column("role", server_default=None)
        batch_op.drop_constraint(KEY, type_="foreignkey")
        batch_op.drop_column("principal_id")
    with op.batch_alter_table("sessions") as batch_op:
        batch_op.drop_constraint(NAME, type_="unique")
        batch_op.drop_column("name")
        batch_op.drop_constraint(OWNER, type_="foreignkey")
        batch_op.create_foreign_key(OWNER_BEFORE, "credentials", ["owner_id"], ["id"])
    op.drop_table("principals")
