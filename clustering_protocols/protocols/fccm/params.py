"""Parameters of collaborative fuzzy co-clustering."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from clustering_protocols.common.errors import InvalidData, InvalidParameters
from clustering_protocols.contract import PartyContext, SessionContext
from clustering_protocols.contract.parameter_groups import PUBLISHED, STARTS
from clustering_protocols.numerics.data_source import DataSource, sparse_matrix
from clustering_protocols.records.arrays import IntArray
from clustering_protocols.shared_stages.alignment.params import AlignedParams
from clustering_protocols.terms.schema import Schema


class CoClustering(AlignedParams):
    """Parameters of `fccm`; the defaults equal the pooled result and show least."""

    n_clusters: int = Field(ge=1, le=1000, description="C, the number of co-clusters.")
    lambda_u: float = Field(
        default=0.001,
        gt=0,
        le=1e6,
        description="λ_u, fuzziness of the objects' memberships: larger is fuzzier. Like "
        "λ_w in units of r_max.",
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
    normalisation: Literal["global", "site"] = Field(
        default="global",
        description="global: item memberships of a cluster sum to 1 over the items of "
        "all sites, as if pooled. site: over the items of each site, as in the paper.",
    )
    n_init: int = Field(
        default=10,
        ge=1,
        le=100,
        description="Starts, which go through the same rounds; the one with the largest "
        "criterion is the result. Every start makes messages longer, and shows the other "
        "sites together as many sums again.",
        json_schema_extra=STARTS,
    )
    max_iter: int = Field(
        default=100,
        ge=1,
        le=1000,
        description="Most iterations of a start.",
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
        ge=1,
        description="The analyst and the coordinator get no size of a cluster with "
        "fewer objects.",
        json_schema_extra=PUBLISHED,
    )
    small_cohorts: Literal["refuse", "allow"] = Field(
        default="refuse",
        description="Every site reads the totals of all rounds. refuse: no session whose "
        "totals of an object hold more than half as many bits as the others have items: "
        "they could be solved for the items. allow: continue (a risk).",
        json_schema_extra=PUBLISHED,
    )

    def select_rows(self, data: DataSource, *, shared: bool) -> IntArray | None:
        """Return which rows take part; refuse co-occurrences outside [0, r_max].

        Raises InvalidData, GuardRefused: as of :class:`AlignedParams`, and of values
            that are not between them.
        """
        R = sparse_matrix(data)
        negative, large = R.data < 0, R.data > self.r_max
        outside = np.unique(R.indices[negative | large])
        if len(outside):
            named = ", ".join(np.array(data.columns)[outside[:5]])
            found = "Negative values in data" if negative.any() else "Values too large"
            most = f"the terms take 0 to {self.r_max:g}, their r_max."
            other = "" if negative.any() else " A new session can have a larger one."
            raise InvalidData(f"{found}, for example in {named}: {most}{other}")
        return super().select_rows(data, shared=shared)

    def check_dictionary(self, dictionary: Sequence[Schema]) -> None:
        """Refuse so few items that totals of so many rounds could be solved for them."""
        from . import round_bound

        widths = [len(schema.names) for schema in dictionary]
        excess = round_bound.excess(self, self.n_clusters, widths) if widths else ""
        if excess:
            raise InvalidParameters(excess, field="max_iter")

    @property
    def fuzziness(self) -> tuple[float, float]:
        """Return λ_u and λ_w in units of the data, so that these do not matter."""
        return self.lambda_u * self.r_max, self.lambda_w * self.r_max

    @property
    def is_global(self) -> bool:
        """Return whether item memberships are normalised over all sites."""
        return self.normalisation == "global"


FccmSession = SessionContext[CoClustering]
FccmContext = PartyContext[CoClustering]
