"""Parameters of data collaboration clustering."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, Self

from pydantic import Field, model_validator

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.common.limits import (
    MANY_IN_A_GRAPH,
    N_REPRESENTATIVES,
    count_graph_rows,
)
from clustering_protocols.contract import Params, PartyContext, SessionContext
from clustering_protocols.contract.parameters import (
    ASKED,
    PUBLISHED,
    KMeansIterations,
    KMeansStarts,
)
from clustering_protocols.shared_stages.alignment.params import AlignedParams
from clustering_protocols.terms.preparation import ColumnPlan, check_finite_ranges
from clustering_protocols.terms.schema import Schema

LEAST_WIDTH: Final = 2
"""The minimum number of columns of a party that drops one dimension."""

WIDE: Final = 10
"""The minimum number of columns at which dropping a dimension had no measurable cost."""

COST: Final = (
    "On 21 data sets, the objective was up to 89 times the pooled one if a party has two "
    "columns, 7 times with three, 2.7 times with four or five, and 1.1 times with six"
)


class Anchor(Params):
    """The anchor data X^anc, which a column group shares and the analyst does not know."""

    kind: Literal["gaussian", "rotated", "uniform"] = Field(
        default="gaussian",
        description="gaussian: normal with the pooled mean and standard deviation of "
        "each feature, and without correlation. rotated: uniform, rotated secretly, with "
        "the same means and standard deviations. uniform: within the range of each "
        "feature, as in the paper; can be unmixed (a risk).",
    )
    n_rows: int | None = Field(
        default=None,
        ge=2,
        le=1_000_000,
        description="r; at least one more than all features, or twice all features if "
        "anchors are not gaussian or the target is orthonormal. Default: the larger of "
        "500 and that number.",
    )
    ranges: Literal["pooled", "declared"] = Field(
        default="pooled",
        description="The ranges of uniform anchors. pooled: over the parties of the "
        "column group. declared: minimum and maximum in the data dictionary.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.ranges == "declared" and self.kind != "uniform":
            raise ValueError("ranges 'declared' is for uniform anchors")
        return self


class DataCollaboration(AlignedParams):
    """Parameters of `dc`; with the defaults, the upload preserves distances."""

    n_clusters: int = Field(ge=1, le=10_000, description="k.")
    scaling: Literal["shared", "center", "local", "none"] = Field(
        default="shared",
        description="shared: by pooled mean and standard deviation of each feature. "
        "center: by the party's own means. local: by its own means and standard "
        "deviations, as in the paper's text; parties then disagree on units. none: as "
        "given.",
    )
    anchor: Anchor = Anchor()
    dimensions: Literal["all_but_one", "all"] = Field(
        default="all_but_one",
        description="How many dimensions of its rows a party sends. all_but_one: one "
        "fewer than they have, so that part of each row is never sent. all: as many as "
        "there are columns, even if there is only one; distances are then exactly "
        "those of the rows (a risk).",
        json_schema_extra={
            ASKED: "'all_but_one' drops one dimension of each party's rows, and costs "
            f"quality if a party has fewer than {WIDE} columns. {COST}. 'all' "
            "gives the clusters of the pooled rows, and an analyst who colludes with "
            "one party rebuilds all rows."
        },
    )
    target: Literal["isometric", "orthonormal"] = Field(
        default="isometric",
        description="isometric: U_1 Σ_1, keeps distances. orthonormal: U_1, as in the "
        "paper's equations 15 to 19; whitens the space.",
    )
    n_init: KMeansStarts = 10
    max_iter: KMeansIterations = 300

    algorithm: Literal["kmeans", "spectral"] = Field(
        default="kmeans",
        description="kmeans: on the common space. spectral: on the leading "
        "eigenvectors of its graph of ten nearest neighbours. If there are more than "
        f"{MANY_IN_A_GRAPH:,} rows, it clusters {N_REPRESENTATIVES:,} means, each over "
        "the rows that are nearest to a randomly drawn row (an approximation).",
    )
    output: Literal["labels", "coordinates"] = Field(
        default="labels",
        description="coordinates: each row group also gets its rows in the common "
        "space and the centroids, as in the paper (a risk).",
        json_schema_extra=PUBLISHED,
    )
    predictor: bool = Field(
        default=False,
        description="Let parties have the collaboration map and the centroids, so that "
        "they can label new rows at home (a risk; for one column group and k-means; no "
        "party may use a transformer of its own).",
    )

    def check_prepared_columns(self, plans: Sequence[ColumnPlan]) -> None:
        """Raise if the scaling does not suit columns that are already prepared."""
        if self.scaling != "shared":
            raise InvalidParameters("preparation needs scaling 'shared'.")

    def check_dictionary(self, dictionary: Sequence[Schema]) -> None:
        """Raise if fields lack the ranges from which anchors are drawn."""
        if self.anchor.ranges == "declared":
            check_finite_ranges(dictionary, "anchor.ranges 'declared'")

    def samples_rows(self, n_rows: int) -> bool:
        """Return whether there are too many rows to cluster each of them."""
        return self.algorithm == "spectral" and count_graph_rows(n_rows) < n_rows

    def count_anchors(self, n_features: int) -> int:
        """Return the number r of anchors.

        n_features: the number of features of all column groups together.
        """
        return self.anchor.n_rows or max(500, self.minimum_anchors(n_features))

    def minimum_anchors(self, n_features: int) -> int:
        """Return the smallest number of anchors that determines the collaboration maps.

        If the columns of the anchors are orthogonal to each other, and to the column of
        ones of an affine map, few anchors determine the maps as well as infinitely many
        independent ones. The columns of independent anchors correlate by chance, and so
        do the columns of several column groups in one fit. Maps fitted to few such
        anchors fit the anchors but not the data.
        """
        are_orthogonal = self.anchor.kind == "gaussian" and self.target == "isometric"
        return n_features + 1 if are_orthogonal else 2 * n_features

    @property
    def drops_one_dimension(self) -> bool:
        """Return whether parties send one dimension fewer than the rank of their rows."""
        return self.dimensions == "all_but_one"


DcSession = SessionContext[DataCollaboration]
DcContext = PartyContext[DataCollaboration]


def count_session_anchors(session: DcSession) -> int:
    """Return the number r of anchors of a session."""
    return session.params.count_anchors(sum(session.column_widths))
