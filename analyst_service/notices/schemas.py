"""What is posted to be told."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from clustering_protocols.wire.notices import MAX_ADDRESS, Way


class ReceiverWrite(BaseModel):
    """An address to be told at."""

    model_config = ConfigDict(extra="forbid")

    way: Way
    address: str = Field(
        min_length=3,
        max_length=MAX_ADDRESS,
        description="https://… of a webhook, or an address of mail.",
    )
