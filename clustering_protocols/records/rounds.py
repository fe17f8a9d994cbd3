"""The address of a round, which is part of every packet, envelope and log line."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class RoundRef(BaseModel):
    """One attempt at one round of a session.

    round: counted from 1, through all stages of a session.
    attempt: counted from 1; a new attempt voids the earlier ones.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    stage: str
    round: int = Field(ge=1)
    attempt: int = Field(ge=1)

    @property
    def when(self) -> RoundRef:
        """Return the stage, round and attempt, without the further fields of a subclass."""
        return RoundRef(stage=self.stage, round=self.round, attempt=self.attempt)

    def __str__(self) -> str:
        return f"stage {self.stage!r}, round {self.round}, attempt {self.attempt}"
