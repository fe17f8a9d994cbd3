"""The address of a round: on every packet, on every envelope, in every log."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class RoundRef(BaseModel):
    """One attempt of one round of a session.

    round: counted through all stages of a session, from 1.
    attempt: from 1; earlier attempts were void.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    stage: str
    round: int = Field(ge=1)
    attempt: int = Field(ge=1)

    @property
    def when(self) -> RoundRef:
        """Return the round alone, without further fields of an address."""
        return RoundRef(stage=self.stage, round=self.round, attempt=self.attempt)

    def __str__(self) -> str:
        return f"stage {self.stage!r}, round {self.round}, attempt {self.attempt}"
