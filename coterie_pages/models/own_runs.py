"""The runs of a session over the own rows of a party, before one is chosen."""

from __future__ import annotations

from clustering_protocols.common.values import Value
from clustering_protocols.numerics.profiles import Profile
from coterie_pages.models.screens import Screen


class OwnRun(Value):
    """What one number of clusters makes of the own rows.

    own_sizes: own rows in each cluster; sizes: rows of all parties.
    profile: of the own rows; None without a dictionary.
    """

    n_clusters: int
    own_sizes: tuple[int, ...]
    sizes: tuple[int, ...]
    profile: Profile | None


class RunOverlap(Value):
    """How the clusters of two runs share the own rows: a row for each of the first."""

    first: int
    second: int
    counts: tuple[tuple[int, ...], ...]


class OwnRunsPage(Screen):
    """Each number of clusters over the own rows: sizes, profile, and what moves."""

    template = "desk/own-runs.html.j2"
    title: str
    session: str
    slot: str
    runs: tuple[OwnRun, ...]
    overlaps: tuple[RunOverlap, ...]
