"""What a session lets out beside labels, and to whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from clustering_protocols.common.values import Section
from clustering_protocols.terms.captions import MIN_CLUSTER_ROWS, PROFILES


class Release(Section):
    """Profiles: what the clusters are like, field by field, over all parties.

    Those who hold the same fields add theirs up, from three parties on; others get the
    profile of their own rows, which stays with them.
    """

    profiles: Annotated[Literal["members", "everybody"], PROFILES] = Field(
        description="members: each party reads the profile of the fields it holds. "
        "everybody: the coordinator and all parties read all profiles, rounded."
    )
    min_cluster_rows: Annotated[int, MIN_CLUSTER_ROWS] = Field(
        default=10,
        ge=5,
        le=1_000_000,
        description="Clusters with fewer rows together are one line 'others'.",
    )

    @property
    def readers(self) -> Mapping[str, str]:
        """Return what analyst, party and coordinator read of profiles, if they do."""
        if self.profiles == "members":
            return {"party": "Profiles in its own variables."}
        rounded = "Rounded profiles."
        own = "Profiles in its own variables, rounded ones in others."
        return {"analyst": rounded, "party": own, "coordinator": rounded}

    @property
    def sentence(self) -> str:
        """Return who reads what the clusters are like."""
        readers = {
            "members": "the parties that hold the same columns read them",
            "everybody": "all parties and the coordinator read them, rounded",
        }
        return (
            f"profiles of the clusters: {readers[self.profiles]}; clusters of fewer than "
            f"{self.min_cluster_rows} rows together"
        )
