"""Parameters of OmniFC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.common.limits import (
    MANY_IN_A_GRAPH,
    N_REPRESENTATIVES,
    count_graph_rows,
)
from clustering_protocols.contract import Params, PartyContext, SessionContext
from clustering_protocols.contract.parameters import PUBLISHED, STARTS
from clustering_protocols.numerics import fuzziness
from clustering_protocols.terms.preparation import (
    ColumnPlan,
    Ranges,
    check_finite_ranges,
)
from clustering_protocols.terms.schema import Schema

from . import units
from .units import MAX_BITS


class OmniFC(Params):
    """Parameters of `omnifc`; the defaults give the clustering of the pooled data."""

    algorithm: Literal[
        "kmeans",
        "fuzzy_cmeans",
        "nmf",
        "spectral",
        "dbscan",
        "hierarchical",
        "kmedoids",
        "hdbscan",
    ] = Field(default="kmeans", description="What the analyst runs on the distances.")
    n_clusters: int | None = Field(
        default=None, ge=1, le=10_000, description="k; for all but dbscan and hdbscan."
    )
    distances: Literal["all", "landmarks"] = Field(
        default="all",
        description="all: between all rows; memory and uploads grow with the square "
        "of the rows. landmarks: of each row to d + 1 points that the parties draw in "
        "common (landmark MDS), for d features; 8 (d + 1) bytes per row and party. "
        "They determine the rows up to a rigid motion, as all distances do, except for "
        "rounding in the 14th digit. Besides what the distances show, the analyst "
        "learns where the middle of the features' ranges lies among the rows; and if a "
        "party gives it the landmarks, it can compute all rows, however few that party "
        "has itself. For hierarchical and kmedoids, the analyst's memory still grows with "
        f"the square of the rows. If there are more than {MANY_IN_A_GRAPH:,} rows, "
        f"spectral clusters {N_REPRESENTATIVES:,} means, each over the rows that are "
        "nearest to a randomly drawn row (an approximation).",
    )
    features: Literal["embedding", "distance_rows"] = Field(
        default="embedding",
        description="embedding: kmeans, fuzzy_cmeans, dbscan and hdbscan, with landmarks "
        "also spectral, read a classical scaling of the distances, which is the "
        "pooled data up to a rigid motion; the others read the distances. "
        "distance_rows: as in the paper, each row's distances to all rows are its "
        "features, but not for dbscan and hdbscan; the time of spectral, hierarchical "
        "and kmedoids then grows with the cube of the rows.",
    )
    scaling: Literal["standard", "minmax", "unit_norm", "none"] = Field(
        default="standard",
        description="standard: by mean and standard deviation of each feature over "
        "all parties. minmax: by its range, as ``ranges`` says. unit_norm: each row "
        "divided by its length. none: as given.",
    )
    ranges: Literal["pooled", "declared"] = Field(
        default="pooled",
        description="For minmax and none. pooled: over all parties. declared: minimum "
        "and maximum in the data dictionary; a value outside stops its party.",
    )
    linkage: Literal["single", "complete", "average", "ward"] = Field(
        default="average", description="Linkage of hierarchical."
    )
    eps: float | None = Field(
        default=None,
        gt=0,
        description="eps of dbscan, in scaled units. Default: the knee of the sorted "
        "distances to the min_samples-th nearest row.",
    )
    min_samples: int = Field(
        default=5,
        ge=1,
        le=1000,
        description="For dbscan and hdbscan; the row itself counts.",
    )
    min_cluster_size: int = Field(
        default=5, ge=2, le=100_000, description="For hdbscan."
    )
    fuzziness: Annotated[float, Field(gt=1, le=10)] | Literal["auto"] = Field(
        default="auto",
        description="The exponent of fuzzy_cmeans. auto: by the numbers of rows and columns "
        "(Schwämmle and Jensen, 2010), from 1.1 to 2. With 2, clusters coincide if there "
        "are many columns.",
    )
    n_init: int = Field(
        default=10,
        ge=1,
        le=1000,
        description="Starts of kmeans, fuzzy_cmeans and kmedoids, and of the k-means "
        "that ends spectral and nmf.",
        json_schema_extra=STARTS,
    )
    max_iter: int = Field(
        default=300,
        ge=1,
        le=100_000,
        description="Maximum iterations of each iterative algorithm.",
        json_schema_extra=STARTS,
    )

    segments: int = Field(
        default=1, ge=1, le=100, description="l, the parts into which a row is cut."
    )
    noise: int = Field(
        default=1,
        ge=1,
        le=100,
        description="t, the number of parties that learn nothing even if they combine "
        "their shares. 2 l + 2 t - 1 parties are needed.",
        json_schema_extra=PUBLISHED,
    )
    bits: int | None = Field(
        default=None,
        ge=0,
        le=MAX_BITS,
        description="q, the binary digits kept after the point. Default: as many as "
        f"the ranges of the features allow, at most {MAX_BITS}.",
        json_schema_extra=PUBLISHED,
    )
    hide_segments: bool = Field(
        default=True,
        description="Parties mask their answers so that the analyst learns only their "
        "sum, the distances. If false, it also learns the distances of each segment, but "
        "can continue without late parties and can find a corrupt answer.",
        json_schema_extra=PUBLISHED,
    )

    max_rows: int = Field(
        default=10_000,
        ge=3,
        le=1_000_000,
        description="The maximum number of rows of all parties together; memory grows "
        "with its square, unless ``distances`` is 'landmarks'.",
    )
    memory_limit: int = Field(
        default=3 << 30,
        ge=1 << 28,
        description="Bytes that the analyst's step may take; max_rows rows must fit.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        by_density = self.algorithm in {"dbscan", "hdbscan"}
        if by_density and self.n_clusters is not None:
            raise ValueError(
                f"{self.algorithm} finds the number of clusters: leave out n_clusters"
            )
        if not by_density and self.n_clusters is None:
            raise ValueError(f"{self.algorithm} needs n_clusters")
        if self.ranges == "declared" and self.scaling not in {"minmax", "none"}:
            raise ValueError("ranges 'declared' is for scaling 'minmax' and 'none'")
        if self.algorithm == "nmf" and self.features == "embedding":
            raise ValueError(
                "nmf needs features 'distance_rows': an embedding has negative numbers"
            )
        if self.features == "distance_rows":
            if self.distances == "landmarks":
                raise ValueError(
                    "features 'distance_rows' need distances 'all': a row's distances to all "
                    "rows are its features"
                )
            if by_density:
                raise ValueError(f"{self.algorithm} needs features 'embedding'")
        return self

    @property
    def needed_answers(self) -> int:
        """Return R = 2l + 2t - 1, the number of values that determine a polynomial."""
        return 2 * self.segments + 2 * self.noise - 1

    def segment_width(self, n_features: int) -> int:
        """Return the number of features per segment, ⌈d / l⌉."""
        return -(-n_features // self.segments)

    def samples_rows(self, n_rows: int) -> bool:
        """Return whether there are too many rows to cluster each of them.

        With distances 'all', every row is clustered, because memory limits the number
        of rows before that.
        """
        of_rows = self.algorithm == "spectral" and self.distances == "landmarks"
        return of_rows and count_graph_rows(n_rows) < n_rows

    def check_prepared_columns(self, plans: Sequence[ColumnPlan]) -> None:
        """Raise if the scaling does not suit columns that are already prepared."""
        if self.scaling != "standard":
            raise InvalidParameters("preparation needs scaling 'standard'.")

    def check_dictionary(self, dictionary: Sequence[Schema]) -> None:
        """If ranges are declared, raise if fields lack them or q does not fit them."""
        if self.ranges == "declared":
            check_finite_ranges(dictionary, "ranges 'declared'")
            scale = units.build_declared_scale(self.scaling, Ranges.of(dictionary[0]))
            units.bits_for(self.bits, scale.ranges)

    @property
    def k(self) -> int:
        """Return the number of clusters; raise ValueError if the algorithm chooses it."""
        if self.n_clusters is None:
            raise ValueError(f"{self.algorithm} has no number of clusters")
        return self.n_clusters

    @property
    def exponent(self) -> float:
        """Return the exponent of fuzzy_cmeans; call :meth:`resolve_sizes` first."""
        if self.fuzziness == "auto":
            raise ValueError("call resolve_sizes before exponent")
        return self.fuzziness

    def resolve_sizes(self, n_rows: int, n_columns: int) -> Self:
        """Return these parameters with the exponent that suits the size of the data."""
        if self.algorithm != "fuzzy_cmeans" or self.fuzziness != "auto":
            return self
        exponent = fuzziness.exponent_by_size(n_rows, n_columns)
        return self.model_copy(update={"fuzziness": exponent})


OmniSession = SessionContext[OmniFC]
OmniContext = PartyContext[OmniFC]
