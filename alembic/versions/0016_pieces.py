"""Contributions that come in pieces.

Revision: 0016
Follows: 0015
"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_TABLES = ("partial_uploads", "upload_pieces")


def _place() -> list[sa.Column]:
    return [
        sa.Column("session_id", sa.String(length=63), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("slot", sa.String(length=63), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
    ]


def upgrade() -> None:
    upload, piece = _TABLES
    place = ("session_id", "round", "attempt", "slot")
    op.create_table(
        upload,
        *_place(),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("sealing_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.id"],
            name=op.f("fk_partial_uploads_session_id_sessions"),
        ),
        sa.PrimaryKeyConstraint(*place, name=op.f("pk_partial_uploads")),
    )
    op.create_table(
        piece,
        *_place(),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"],
            ["sessions.id"],
            name=op.f("fk_upload_pieces_session_id_sessions"),
        ),
        sa.PrimaryKeyConstraint(*place, "position", name=op.f("pk_upload_pieces")),
    )
    for table in _TABLES:
        op.create_index(op.f(f"ix_{table}_digest"), table, ["digest"])


def downgrade() -> None:
    for table in reversed(_TABLES):
        op.drop_table(table)
