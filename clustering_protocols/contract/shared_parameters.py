"""Parameters that mean the same in every protocol that has them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from clustering_protocols.contract.parameter_groups import PUBLISHED, STARTS

KMeansStarts = Annotated[
    int,
    Field(ge=1, le=1000, description="Starts of k-means.", json_schema_extra=STARTS),
]
KMeansIterations = Annotated[
    int,
    Field(ge=1, le=100_000, description="Of k-means.", json_schema_extra=STARTS),
]
Jitter = Annotated[
    bool,
    Field(
        description="Move every number by at most half its last digit, as the "
        "dictionary tells it (decimals), the same in every session. Rounded numbers "
        "then do not show which directions are features. Without it they do (a risk).",
        json_schema_extra=PUBLISHED,
    ),
]
