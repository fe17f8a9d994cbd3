"""Parameters of mixtures of normal distributions and latent classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from clustering_protocols.contract import Params, PartyContext, SessionContext
from clustering_protocols.contract.parameters import PUBLISHED, STARTS
from clustering_protocols.terms.preparation import ColumnPlan

Covariance = Literal["full", "tied", "diag", "spherical"]


class Mixture(Params):
    """Parameters of `mixture`: those of scikit-learn's ``GaussianMixture``.

    Columns and covariances are in units of the pooled standard deviations.
    """

    n_clusters: int = Field(ge=1, le=1000, description="k, the components.")
    covariance_type: Covariance = Field(
        default="full",
        description="Of the numbers. full: each component has a covariance matrix of "
        "its own; tied: all have the same; diag: variances alone; spherical: one "
        "variance.",
    )
    reg_covar: float = Field(
        default=1e-6,
        ge=1e-9,
        le=1.0,
        description="Added to each variance, in units of the pooled one.",
    )
    init: Literal["careful", "given"] = Field(
        default="careful",
        description="Start of the means. careful: the centroids of every party's own "
        "k-means, merged by the leader, as in llf. given: initial_centroids.",
        json_schema_extra=STARTS,
    )
    initial_centroids: tuple[tuple[float, ...], ...] | None = Field(
        default=None,
        description="Start 'given': k rows in the units of the columns.",
        json_schema_extra=STARTS,
    )
    max_iter: int = Field(
        default=100,
        ge=1,
        le=1000,
        description="Maximum updates. A session makes fewer if its rows are so few that "
        "parties could solve the totals of all these updates for rows.",
        json_schema_extra=STARTS,
    )
    tol: float = Field(
        default=1e-3,
        ge=0,
        le=0.1,
        description="Stop once the mean log likelihood of a row changes by less.",
        json_schema_extra=STARTS,
    )
    min_cluster_rows: int = Field(
        default=10,
        ge=10,
        le=1_000_000,
        description="A component of less weight in rows keeps its mean and covariance; "
        "analyst and coordinator get nothing of a cluster with fewer rows.",
        json_schema_extra=PUBLISHED,
    )
    publish: Literal["centroids", "sizes"] = Field(
        default="centroids",
        description="What analyst and coordinator get: means and sizes of clusters, or "
        "sizes alone. Means are published in round steps of at least max(1/20, 5/n) "
        "standard deviations for a cluster of n rows, sizes in multiples of five.",
        json_schema_extra=PUBLISHED,
    )

    def check_prepared(self, plans: Sequence[ColumnPlan]) -> None:
        """Accept every preparation: categories are counted by level."""

    @property
    def fewest_published(self) -> int:
        """Return how many rows a cluster needs to be published."""
        return self.min_cluster_rows

    @property
    def start(self) -> str:
        """Return how to start; see :mod:`clustering_protocols.shared_stages.starts`."""
        return self.init

    @property
    def n_init(self) -> int:
        """Return how many starts there are: one."""
        return 1

    @property
    def scaling(self) -> str:
        """Return how columns are scaled: by pooled mean and standard deviation."""
        return "standard"


MixtureSession = SessionContext[Mixture]
MixtureContext = PartyContext[Mixture]
