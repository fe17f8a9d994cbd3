"""Parameters of the protocol that counts linked rows."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from clustering_protocols.contract.parameters import LINKING
from clustering_protocols.shared_stages.alignment.params import AlignedParams, Alignment


class CohortSize(AlignedParams):
    """Parameters of `cohort`, which say how rows are linked and how counts are rounded."""

    alignment: Alignment = Field(
        default=Alignment(method="ecdh"), json_schema_extra=LINKING
    )
    step: Literal[5, 10, 20, 50, 100] = Field(
        default=10,
        description="The number of linked rows is rounded down to a multiple of this. "
        "Choose the minimum number of rows of any group that a later session discloses.",
    )

    @model_validator(mode="after")
    def _check_method(self) -> Self:
        if self.alignment.method != "ecdh":
            raise ValueError("rows are counted with alignment.method 'ecdh'")
        return self

    @property
    def counts_linked(self) -> bool:
        """True, because rows are linked only to be counted."""
        return True
