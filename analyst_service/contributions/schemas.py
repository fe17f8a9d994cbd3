"""JSON of contributions."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from pydantic import BaseModel

from analyst_service.models import Contribution


class Receipt(BaseModel):
    """What the analyst says it stored; the same for every repeat."""

    session: str
    slot: str
    round: int
    attempt: int
    digest: str
    size: int
    received_at: datetime

    @classmethod
    def of(cls, contribution: Contribution) -> Self:
        """Return the receipt of a stored contribution."""
        return cls(
            session=contribution.session_id,
            slot=contribution.slot,
            round=contribution.round,
            attempt=contribution.attempt,
            digest=contribution.digest,
            size=contribution.size,
            received_at=contribution.received_at,
        )
