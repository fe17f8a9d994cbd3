"""Parameters of lossless federated c-means and fuzzy c-means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal, Self

from pydantic import Field

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.contract import PartyContext, SessionContext
from clustering_protocols.contract.parameters import PUBLISHED, STARTS
from clustering_protocols.numerics import fuzziness
from clustering_protocols.shared_stages.alignment.params import AlignedParams
from clustering_protocols.terms.preparation import ColumnPlan, check_finite_ranges
from clustering_protocols.terms.schema import Schema

Start = Literal["careful", "random_party", "bounds", "given", "random_rows"]
LARGEST_TOL: Final = 0.1
"""The largest tolerance of a new session; above it, a run may end after one update."""
LEAST_FUZZIFIER: Final = 1.1
"""The smallest fuzzifier of a new session over split rows.

Below it, memberships are nearly 0 or 1, as in c-means, but sums are not audited.
"""


class LosslessFederated(AlignedParams):
    """Parameters of `llf`, whose defaults disclose the least.

    The defaults give the result of the pooled rows, provided that small clusters keep
    their place in the pooled run too.
    """

    n_clusters: int = Field(ge=1, le=10_000, description="k (the paper's C).")
    algorithm: Literal["cmeans", "fuzzy_cmeans"] = Field(
        default="cmeans", description="Hard or fuzzy c-means."
    )
    fuzzifier: Annotated[float, Field(gt=1.0, le=100.0)] | Literal["auto"] = Field(
        default="auto",
        description="λ of fuzzy c-means; at least 1.1 for split rows. auto: computed "
        "from the numbers of rows and columns (Schwämmle and Jensen, 2010), from 1.1 "
        "to 2. With 2, clusters coincide if there are many columns.",
    )
    scaling: Literal["standard", "minmax", "none"] = Field(
        default="standard",
        description="standard: by the pooled mean and standard deviation of each "
        "feature. minmax: to [0, 1], by the minimum and maximum in the data "
        "dictionary. none: values are used as they are, but must lie within the same "
        "limits. A value outside them stops its party before anything is sent.",
    )
    init: Start | None = Field(
        default=None,
        description="How the initial centroids are chosen. careful (default): for "
        "split rows, the leader merges the centroids of every party's own k-means; "
        "for split columns, the best of ten starts of k-means on what the analyst "
        "sees of up to 20,000 rows. random_party (split rows): means of five "
        "neighbours of random rows of the leader. bounds: uniform between minimum and "
        "maximum in the data dictionary. given: initial_centroids. random_rows (split "
        "columns): k joint rows that only the parties know.",
        json_schema_extra=STARTS,
    )
    initial_centroids: tuple[tuple[float, ...], ...] | None = Field(
        default=None,
        description="For init 'given': k rows in the units of the data, with columns "
        "in the order of the column groups.",
        json_schema_extra=STARTS,
    )
    max_iter: int = Field(
        default=100,
        ge=1,
        le=1000,
        description="T, the maximum number of updates.",
        json_schema_extra=STARTS,
    )
    tol: float = Field(
        default=1e-5,
        ge=0,
        json_schema_extra={**STARTS, "maximum": LARGEST_TOL},
        description="ε, at most 0.1: stop once the centroids (fuzzy c-means over split "
        "columns: the distances) change by no more than this, as a Frobenius norm in "
        "scaled units. 0: stop once nothing changes at all.",
    )
    quorum: int | None = Field(
        default=None,
        ge=1,
        description="For split rows: the number of parties that suffice to continue "
        "when others miss a deadline. By default all are needed, or the session ends.",
    )
    allow_two_parties: bool = Field(
        default=False,
        description="Allow masked sums of only two parties, although each can subtract "
        "its own share.",
        json_schema_extra=PUBLISHED,
    )
    min_cluster_rows: int = Field(
        default=10,
        ge=1,
        description="The analyst and the coordinator receive nothing about a cluster "
        "with fewer rows.",
        json_schema_extra=PUBLISHED,
    )
    small_cohorts: Literal["refuse", "allow"] = Field(
        default="refuse",
        description="Fuzzy c-means over split rows: every party reads the totals of "
        "all rounds, from which it could compute the rows of others if these are "
        "fewer than 2 (T + 2) k (1 + 1/F). refuse: no such session is run. "
        "allow: continue (a risk).",
        json_schema_extra=PUBLISHED,
    )
    publish: Literal["centroids", "sizes", "nothing"] = Field(
        default="centroids",
        description="What is published to the analyst and the coordinator: final "
        "centroids (split rows) and cluster sizes, sizes alone, or only that there is a "
        "result. "
        "Centroids of a cluster of n rows are rounded to steps of at least max(1/20, "
        "5/n) standard deviations, and sizes to multiples of five.",
        json_schema_extra=PUBLISHED,
    )
    output: Literal["labels", "memberships"] = Field(
        default="labels",
        description="memberships: each party also receives the memberships of its rows "
        "(fuzzy c-means).",
        json_schema_extra=PUBLISHED,
    )

    def check_prepared_columns(self, plans: Sequence[ColumnPlan]) -> None:
        """Refuse any scaling but 'standard' for prepared columns."""
        if self.scaling != "standard":
            raise InvalidParameters("preparation needs scaling 'standard'.")

    def check_dictionary(self, dictionary: Sequence[Schema]) -> None:
        """Refuse fields without ranges if the scaling or the start needs ranges."""
        if self.scaling != "standard":
            check_finite_ranges(dictionary, f"scaling {self.scaling!r}")
        if self.init == "bounds":
            check_finite_ranges(dictionary, "init 'bounds'")

    @property
    def min_published_rows(self) -> int:
        """The minimum number of rows of a cluster that is published."""
        return self.min_cluster_rows

    @property
    def fuzzy(self) -> bool:
        """Whether the algorithm is fuzzy c-means."""
        return self.algorithm == "fuzzy_cmeans"

    @property
    def exponent(self) -> float:
        """The exponent λ; raises ValueError before :meth:`resolve_sizes` has set it."""
        if self.fuzzifier == "auto":
            raise ValueError("call resolve_sizes before exponent")
        return self.fuzzifier

    def resolve_sizes(self, n_rows: int, n_columns: int) -> Self:
        """Return the parameters with λ 'auto' replaced by a number for this table size."""
        if not self.fuzzy or self.fuzzifier != "auto":
            return self
        fuzzifier = fuzziness.exponent_by_size(n_rows, n_columns)
        return self.model_copy(update={"fuzzifier": fuzzifier})

    @property
    def may_be_left_out(self) -> bool:
        """Whether rounds may continue without some of the parties."""
        return self.quorum is not None

    @property
    def min_rows_to_move_centroid(self) -> int:
        """The smallest cluster whose centroid is updated, in rows, if rows are split.

        It is 1 for fuzzy c-means, where every centroid is a weighted mean of all rows.
        """
        return 1 if self.fuzzy else self.min_cluster_rows

    @property
    def least_parties(self) -> int:
        """The minimum number of parties that take part in a masked sum."""
        return 2 if self.allow_two_parties else 3

    @property
    def start(self) -> Start:
        """How the initial centroids are chosen; 'careful' unless ``init`` is set."""
        return self.init or "careful"


LlfSession = SessionContext[LosslessFederated]
LlfContext = PartyContext[LosslessFederated]
