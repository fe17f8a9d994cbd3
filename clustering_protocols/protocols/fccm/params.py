"""Parameters of collaborative fuzzy co-clustering, and a bound on the number of rounds.

In each of T + 1 rounds, a site that subtracts its own share learns n_init·C sums over the
other sites' items for each object. An item of another site may be a single bit, and a sum
has as many bits as a ring element, so equations and unknowns are counted in bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import numpy as np
from pydantic import Field

from clustering_protocols.common.errors import (
    GuardRefused,
    InvalidData,
    InvalidParameters,
)
from clustering_protocols.contract import PartyContext, SessionContext
from clustering_protocols.contract.parameters import PUBLISHED, STARTS
from clustering_protocols.contract.row_history import RoundBound
from clustering_protocols.numerics.data_source import DataSource, sparse_matrix
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.secrecy.fixed_point import RING_BITS
from clustering_protocols.shared_stages.alignment.params import AlignedParams
from clustering_protocols.terms.schema import Schema

LEAST_ITEMS: Final = 2 * RING_BITS
"""The minimum number of items of a site: twice the number of bits of a total."""


class CoClustering(AlignedParams):
    """Parameters of `fccm`; the defaults give the pooled result and disclose the least."""

    n_clusters: int = Field(ge=1, le=1000, description="C, the number of co-clusters.")
    lambda_u: float = Field(
        default=0.001,
        gt=0,
        le=1e6,
        description="λ_u, fuzziness of the objects' memberships: larger is fuzzier. "
        "λ_u and λ_w are in units of r_max.",
    )
    lambda_w: float = Field(
        default=100.0,
        gt=0,
        le=1e9,
        description="λ_w, fuzziness of the items' memberships: larger is fuzzier.",
    )
    r_max: float = Field(
        default=1.0,
        gt=0,
        le=1e9,
        description="Largest co-occurrence; a larger or negative one stops its site "
        "before anything is sent.",
    )
    n_init: int = Field(
        default=10,
        ge=1,
        le=100,
        description="Starts, which go through the same rounds; the one with the largest "
        "criterion is the result. Every start makes messages longer, and lets the other "
        "sites together read further sums.",
        json_schema_extra=STARTS,
    )
    max_iter: int = Field(
        default=100,
        ge=1,
        le=1000,
        description="Maximum iterations of a start.",
        json_schema_extra=STARTS,
    )
    tol: float = Field(
        default=1e-6,
        ge=0,
        lt=1,
        description="ε: stop once no object membership changes by more.",
        json_schema_extra=STARTS,
    )
    min_cluster_rows: int = Field(
        default=10,
        ge=10,
        description="The analyst and the coordinator get no size of a cluster with "
        "fewer objects. They get other sizes in multiples of five.",
        json_schema_extra=PUBLISHED,
    )
    small_cohorts: Literal["refuse", "allow"] = Field(
        default="refuse",
        description="Every site reads the totals of all rounds. refuse: no session in "
        "which a site has fewer than 118 items, or in which the totals of an object have "
        "more than half as many bits as the others have items, because they could be "
        "solved for the items. allow: continue (a risk).",
        json_schema_extra=PUBLISHED,
    )

    def select_rows(self, data: DataSource, *, shared: bool) -> IntArray | None:
        """Return which rows take part, and check that co-occurrences lie in [0, r_max].

        Raises InvalidData for values outside this range, and InvalidData or
        GuardRefused as in :class:`AlignedParams`.
        """
        R = sparse_matrix(data)
        negative, large = R.data < 0, R.data > self.r_max
        outside = np.unique(R.indices[negative | large])
        if len(outside):
            columns = ", ".join(np.array(data.columns)[outside[:5]])
            error, remedy = "Negative values in data", ""
            if not negative.any():
                error = "Values too large"
                remedy = " A new session can have a larger one."
            raise InvalidData(
                f"{error}, for example in {columns}: the terms allow 0 to "
                f"{self.r_max:g}, their r_max.{remedy}"
            )
        return super().select_rows(data, shared=shared)

    def check_dictionary(self, dictionary: Sequence[Schema]) -> None:
        """Raise if there are too few items for the number of rounds."""
        widths = [len(schema.names) for schema in dictionary]
        excess = explain_excess_rounds(self, self.n_clusters, widths) if widths else ""
        if excess:
            raise InvalidParameters(excess, field="small_cohorts")

    @property
    def min_published_rows(self) -> int:
        """The minimum number of objects of a cluster whose size is published."""
        return self.min_cluster_rows

    @property
    def fuzziness(self) -> tuple[float, float]:
        """Return λ_u and λ_w in the units of the data."""
        return self.lambda_u * self.r_max, self.lambda_w * self.r_max


FccmSession = SessionContext[CoClustering]
FccmContext = PartyContext[CoClustering]


def explain_excess_rounds(params: CoClustering, k: int, widths: Sequence[int]) -> str:
    """Return why totals would reveal or determine items; "" if they do not.

    k: number of clusters of all runs together.
    widths: number of items of each site.
    """
    if params.small_cohorts == "allow":
        return ""
    if min(widths) < LEAST_ITEMS:
        return (
            f"A site has {min(widths)} items, and a total would reveal them; at least "
            f"{LEAST_ITEMS} are needed to hide each other. With small_cohorts 'allow' the "
            "risk is accepted."
        )
    n_items = sum(widths) - max(widths)
    bound, single = (
        RoundBound(per_round=RING_BITS * k * starts, further=1, unknowns=n_items)
        for starts in (params.n_init, 1)
    )
    return bound.explain_excess(
        params.max_iter,
        f"For each object, a site reads {bound.per_round:,} bits about {n_items:,} items of "
        "others",
        f"{bound.required_unknowns(params.max_iter):,} items of others",
        single,
    )


def check_weights(context: FccmContext, weights: FloatArray) -> None:
    """Raise GuardRefused if the weights (m, columns) concentrate on a few items."""
    if context.session.params.small_cohorts == "allow":
        return
    weights = weights[:, weights.any(axis=0)]  # a sum without weight reveals nothing
    shares = weights / weights.max(axis=0)
    # the effective number of items
    spread = shares.sum(axis=0) ** 2 / (shares**2).sum(axis=0)
    if spread.min(initial=np.inf) < LEAST_ITEMS:
        raise GuardRefused(
            f"A total would depend on effectively {int(spread.min())} items of this site, "
            f"and reveal them; at least {LEAST_ITEMS} are needed to hide each other. Choose a "
            "larger lambda_w, or accept the risk with small_cohorts 'allow'."
        )
