"""Queries on uploads that come in pieces."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction

from analyst_service.contributions.repository import SlotAttempt
from analyst_service.storage.models import PartialUpload, Piece


class PieceRepository:
    """Uploads and their pieces in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def upload(self, key: SlotAttempt, *, lock: bool = False) -> PartialUpload | None:
        """Return the upload of an answer; ``lock`` it until the transaction ends."""
        place = key._asdict()
        return self._transaction.get(PartialUpload, place, with_for_update=lock or None)

    def add(self, row: PartialUpload | Piece) -> None:
        """Store a row."""
        self._transaction.add(row)
        self._transaction.flush()

    def piece(self, key: SlotAttempt, position: int) -> Piece | None:
        """Return the piece that begins at a position."""
        place = {**key._asdict(), "position": position}
        return self._transaction.get(Piece, place)

    def offset(self, key: SlotAttempt) -> int:
        """Return how many bytes have come: pieces leave no gap."""
        found = self._transaction.scalar(
            sa.select(sa.func.coalesce(sa.func.sum(Piece.size), 0)).where(_of(key))
        )
        return int(found or 0)

    def digests(self, key: SlotAttempt) -> Sequence[str]:
        """Return the digests of all pieces, in their order."""
        query = sa.select(Piece.digest).where(_of(key)).order_by(Piece.position)
        return self._transaction.scalars(query).all()


def _of(key: SlotAttempt) -> sa.ColumnElement[bool]:
    return sa.and_(
        *(getattr(Piece, name) == value for name, value in key._asdict().items())
    )
