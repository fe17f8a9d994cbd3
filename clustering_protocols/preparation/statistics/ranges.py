"""What may be declared of a feature instead of pooling it among the parties."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from clustering_protocols.contract import Params


class Range(Params):
    """Declared smallest and largest value of a feature; the analyst knows it too."""

    minimum: float = Field(default=0.0, description="No party may hold less.")
    maximum: float = Field(default=1.0, description="No party may hold more.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.minimum > self.maximum:
            raise ValueError("minimum is larger than maximum")
        return self
