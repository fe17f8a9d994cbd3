"""Parameters that mean the same in every protocol that has them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from clustering_protocols.contract.parameter_groups import STARTS

KMeansStarts = Annotated[
    int,
    Field(ge=1, le=1000, description="Starts of k-means.", json_schema_extra=STARTS),
]
KMeansIterations = Annotated[
    int,
    Field(ge=1, le=100_000, description="Of k-means.", json_schema_extra=STARTS),
]
