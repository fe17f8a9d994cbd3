"""JSON of contributions."""

from __future__ import annotations

from analyst_service.storage.models import Contribution
from clustering_protocols.wire.answers import Receipt


def receipt_of(contribution: Contribution, session: str) -> Receipt:
    """Return the receipt of a stored contribution to a session, as its parties name it."""
    return Receipt(
        session=session,
        slot=contribution.slot,
        round=contribution.round,
        attempt=contribution.attempt,
        digest=contribution.digest,
        size=contribution.size,
        received_at=contribution.received_at,
        sequence=contribution.sequence,
        entry=contribution.entry,
    )
