"""Parameters of Gaussian mixtures and latent classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from clustering_protocols.contract import Params, PartyContext, SessionContext
from clustering_protocols.contract.parameters import PUBLISHED, STARTS
from clustering_protocols.terms.preparation import ColumnPlan

Covariance = Literal["full", "tied", "diag", "spherical"]


class Mixture(Params):
    """Parameters of `mixture`, similar to those of scikit-learn's ``GaussianMixture``.

    Covariances are in units of the pooled standard deviations of the columns.
    """

    n_clusters: int = Field(ge=1, le=1000, description="k, the number of components.")
    covariance_type: Covariance = Field(
        default="full",
        description="The covariances of numbers. full: each component has its own "
        "covariance matrix; tied: all components share one; diag: each has variances "
        "only; spherical: each has a single variance.",
    )
    reg_covar: float = Field(
        default=1e-6,
        ge=1e-9,
        le=1.0,
        description="Added to each variance, as a fraction of the pooled variance.",
    )
    init: Literal["careful", "given"] = Field(
        default="careful",
        description="How the initial means are chosen. careful: the leader merges the "
        "centroids of every party's own k-means, as in llf. given: initial_centroids.",
        json_schema_extra=STARTS,
    )
    initial_centroids: tuple[tuple[float, ...], ...] | None = Field(
        default=None,
        description="For init 'given': k rows in the units of the columns.",
        json_schema_extra=STARTS,
    )
    max_iter: int = Field(
        default=100,
        ge=1,
        le=1000,
        description="The maximum number of updates. A session makes fewer if it has "
        "so few rows that parties could compute rows from the totals of all these "
        "updates.",
        json_schema_extra=STARTS,
    )
    tol: float = Field(
        default=1e-3,
        ge=0,
        le=0.1,
        description="Stop once the mean log likelihood of a row changes by less than "
        "this.",
        json_schema_extra=STARTS,
    )
    min_cluster_rows: int = Field(
        default=10,
        ge=10,
        le=1_000_000,
        description="A component with a smaller weight, in rows, keeps its mean and "
        "covariance. The analyst and the coordinator receive nothing about a cluster "
        "with fewer rows.",
        json_schema_extra=PUBLISHED,
    )
    publish: Literal["centroids", "sizes"] = Field(
        default="centroids",
        description="What the analyst and the coordinator receive: means and sizes of "
        "clusters, or sizes alone. Means of a cluster of n rows are rounded to steps "
        "of at least max(1/20, 5/n) standard deviations, and sizes to multiples of "
        "five.",
        json_schema_extra=PUBLISHED,
    )

    def check_prepared_columns(self, plans: Sequence[ColumnPlan]) -> None:
        """Accept every preparation, because categories are counted by level."""

    @property
    def min_published_rows(self) -> int:
        """The minimum number of rows of a cluster that is published."""
        return self.min_cluster_rows

    @property
    def start(self) -> str:
        """How the means start; see :mod:`clustering_protocols.shared_stages.starts`."""
        return self.init

    @property
    def scaling(self) -> str:
        """How columns are scaled: always by the pooled mean and standard deviation."""
        return "standard"


MixtureSession = SessionContext[Mixture]
MixtureContext = PartyContext[Mixture]
