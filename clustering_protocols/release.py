"""What a session lets out beside labels, and to whom."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from clustering_protocols.values import Section


class Release(Section):
    """Profiles: what the clusters are like, field by field, over all parties.

    Those who hold the same fields add theirs up, from three parties on; others get the
    profile of their own rows, which stays with them.
    """

    profiles: Literal["members", "everybody"] = Field(
        description="members: each party reads the profile of the fields it holds. "
        "everybody: the coordinator and all parties read all profiles, rounded."
    )
    min_cluster_rows: int = Field(
        default=10,
        ge=5,
        le=1_000_000,
        description="Clusters with fewer rows together are one line 'others'.",
    )
