"""Parameters of the dummy protocol."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from clustering_protocols.contract import Params, PartyContext, SessionContext


class Dummy(Params):
    """Parameters of `dummy`, which say when it fails or repeats a round."""

    n_clusters: int = Field(default=2, ge=1, le=100, description="Number of labels.")
    fail_at: Literal["never", "start", "count", "confirm"] = Field(
        default="never", description="The step of the analyst that ends the session."
    )
    void_attempts: int = Field(
        default=0, ge=0, le=10, description="How often the count round is repeated."
    )
    quorum: int | None = Field(
        default=None, ge=1, description="Answers that suffice at a round's deadline."
    )


DummySession = SessionContext[Dummy]
DummyContext = PartyContext[Dummy]
