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
from clustering_protocols.terms.preparation import ColumnPlan, check_bounded
from clustering_protocols.terms.schema import Schema

Start = Literal["careful", "random_party", "bounds", "given", "random_rows"]
LARGEST_TOL: Final = 0.1
"""Largest tolerance of new sessions; with a larger one, a run may end after one update."""
LEAST_FUZZIFIER: Final = 1.1
"""Smallest fuzzifier of new sessions over split rows.

With a smaller one, degrees are nearly 0 or 1, as in c-means, but sums are not audited.
"""


class LosslessFederated(AlignedParams):
    """Parameters of `llf`; the defaults disclose least.

    They give the pooled result, if clusters of few rows do not move there either.
    """

    n_clusters: int = Field(ge=1, le=10_000, description="k (the paper's C).")
    algorithm: Literal["cmeans", "fuzzy_cmeans"] = Field(
        default="cmeans", description="Hard or fuzzy c-means."
    )
    fuzzifier: Annotated[float, Field(gt=1.0, le=100.0)] | Literal["auto"] = Field(
        default="auto",
        description="λ of fuzzy c-means; for split rows at least 1.1. auto: by the "
        "numbers of rows and columns (Schwämmle and Jensen, 2010), from 1.1 to 2. "
        "With 2, clusters coincide in many columns.",
    )
    scaling: Literal["standard", "minmax", "none"] = Field(
        default="standard",
        description="standard: by pooled mean and spread of each feature. minmax: by "
        "minimum and maximum in the data dictionary, to [0, 1]. none: as given, within "
        "the same limits. A value outside stops its party before anything is sent.",
    )
    init: Start | None = Field(
        default=None,
        description="Start. careful (default): split rows: the centroids of every "
        "party's own k-means, merged by the leader; split columns: the best of ten "
        "starts of k-means on what the analyst sees of up to 20,000 rows. random_party "
        "(split rows): means of five neighbours of random rows of the leader. bounds: "
        "uniform between minimum and maximum in the data dictionary. given: "
        "initial_centroids. random_rows (split columns): k joint rows that only the "
        "parties know.",
        json_schema_extra=STARTS,
    )
    initial_centroids: tuple[tuple[float, ...], ...] | None = Field(
        default=None,
        description="Start 'given': k rows in the units of the data, the columns in "
        "the order of the column groups.",
        json_schema_extra=STARTS,
    )
    n_init: int = Field(
        default=1,
        ge=1,
        le=100,
        description="For split rows: how many starts race. Each makes one update; the "
        "one of least inertia (fuzzy: of the least sum of μ^λ d²) continues alone (a "
        "risk, above 1).",
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
        description="ε, at most 0.1: stop once the centroids (split columns, fuzzy: the "
        "distances) move by no more, in the scaled units, as a Frobenius norm. 0: once "
        "nothing moves at all.",
    )
    participation: float = Field(
        default=1.0,
        gt=0.0,
        le=1.0,
        json_schema_extra={"deprecated": True},
        description="γ: the share of parties that are drawn for each update of split "
        "rows; below 1 the result is not the pooled one.",
    )
    quorum: int | None = Field(
        default=None,
        ge=1,
        description="For split rows: how many parties suffice to continue when others "
        "miss a deadline. Default: all, so that the session ends.",
    )
    allow_two_parties: bool = Field(
        default=False,
        description="Let two parties mask their sums; each can subtract its own share.",
        json_schema_extra=PUBLISHED,
    )
    min_cluster_rows: int = Field(
        default=10,
        ge=1,
        description="The analyst and the coordinator get nothing of a cluster with "
        "fewer rows.",
        json_schema_extra=PUBLISHED,
    )
    small_cohorts: Literal["refuse", "allow"] = Field(
        default="refuse",
        description="Fuzzy c-means over split rows: every party reads the totals of all "
        "rounds. refuse: no session in which the others' rows are fewer than "
        "2 (T + n_init + 1) k (1 + 1/F), so that these totals could be solved for them. "
        "allow: continue (a risk).",
        json_schema_extra=PUBLISHED,
    )
    publish: Literal["centroids", "sizes", "nothing"] = Field(
        default="centroids",
        description="What analyst and coordinator get of the result: final centroids "
        "and cluster sizes, sizes alone, or only that it exists. Centroids are "
        "published in round steps of at least max(1/20, 5/n) standard deviations for "
        "a cluster of n rows, sizes in multiples of five.",
        json_schema_extra=PUBLISHED,
    )
    output: Literal["labels", "memberships"] = Field(
        default="labels",
        description="memberships: each party also gets the memberships of its rows "
        "(fuzzy c-means).",
        json_schema_extra=PUBLISHED,
    )

    def check_retired(self) -> None:
        """Refuse updates by randomly drawn parties, which only simulations make."""
        if self.participation != 1:
            raise InvalidParameters(
                f"{self.participation} is only for simulations of the paper. Leave it at "
                "1; if parties may be late, set a quorum.",
                field="participation",
            )

    def check_prepared(self, plans: Sequence[ColumnPlan]) -> None:
        """Refuse a scaling that does not suit prepared columns."""
        if self.scaling != "standard":
            raise InvalidParameters("preparation needs scaling 'standard'.")

    def check_dictionary(self, dictionary: Sequence[Schema]) -> None:
        """Refuse fields without ranges if the scaling or the start needs them."""
        if self.scaling != "standard":
            check_bounded(dictionary, f"scaling {self.scaling!r}")
        if self.init == "bounds":
            check_bounded(dictionary, "init 'bounds'")

    @property
    def fewest_published(self) -> int:
        """Return how many rows a cluster needs to be published."""
        return self.min_cluster_rows

    @property
    def fuzzy(self) -> bool:
        """Return whether rows have memberships instead of labels."""
        return self.algorithm == "fuzzy_cmeans"

    @property
    def exponent(self) -> float:
        """Return λ; call :meth:`resolve_sizes` first."""
        if self.fuzzifier == "auto":
            raise ValueError("call resolve_sizes before exponent")
        return self.fuzzifier

    def resolve_sizes(self, n_rows: int, n_columns: int) -> Self:
        """Return the parameters with λ computed from the numbers of rows and columns."""
        if not self.fuzzy or self.fuzzifier != "auto":
            return self
        fuzzifier = fuzziness.exponent_by_size(n_rows, n_columns)
        return self.model_copy(update={"fuzzifier": fuzzifier})

    @property
    def may_be_left_out(self) -> bool:
        """Return whether rounds may continue without some of the parties."""
        return self.quorum is not None or self.participation < 1

    @property
    def least_rows_moved(self) -> int:
        """Return the fewest rows of a cluster whose centroid moves, if rows are split.

        A fuzzy centroid is a mean of all rows, however few are nearest to it.
        """
        return 1 if self.fuzzy else self.min_cluster_rows

    @property
    def least_parties(self) -> int:
        """Return the fewest parties that may add up a sum."""
        return 2 if self.allow_two_parties else 3

    @property
    def start(self) -> Start:
        """Return the start, with the default filled in."""
        return self.init or "careful"


LlfSession = SessionContext[LosslessFederated]
LlfContext = PartyContext[LosslessFederated]
