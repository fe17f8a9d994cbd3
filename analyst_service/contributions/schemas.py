"""JSON of contributions."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from pydantic import BaseModel, Field

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
    sequence: int | None = Field(
        description="The number of its line in the session's audit; null for sessions "
        "created before the audit existed."
    )
    entry: str | None = Field(description="The SHA-256 of that line.")

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
            sequence=contribution.sequence,
            entry=contribution.entry,
        )
