"""Parameters of product quantisation with one-dimensional scaling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, Self

from pydantic import Field, model_validator

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.contract import Params, PartyContext, SessionContext
from clustering_protocols.contract.parameters import (
    PUBLISHED,
    KMeansIterations,
    KMeansStarts,
)
from clustering_protocols.shared_stages.alignment.params import AlignedParams
from clustering_protocols.terms.preparation import ColumnPlan, check_finite_ranges
from clustering_protocols.terms.schema import Schema


class Privacy(Params):
    """The noise on the codes, and the privacy budget of each person for the session."""

    mechanism: Literal["none", "laplace"] = Field(
        default="none",
        description="laplace: differential privacy of everything that a party uploads "
        "about its rows. It needs the minimum and maximum of every field in the data "
        "dictionary; values outside are clipped to them.",
    )
    epsilon: float = Field(
        default=1.0,
        ge=1e-4,
        le=1e6,
        description="ε per person, over all subspaces and parties.",
    )


class ProductQuantisation(AlignedParams):
    """Parameters of `pqmds`; the defaults preserve distances as well as possible."""

    n_clusters: int = Field(ge=1, le=10_000, description="k.")
    sub_dim: int = Field(
        default=2,
        ge=1,
        le=64,
        description="Features per subspace. 1: each feature has codes of its own, from "
        "which its values can be recovered (a risk).",
    )
    codebook_size: int = Field(
        default=64,
        ge=2,
        le=4096,
        description="Centres per subspace; fewer if there are fewer distinct values.",
    )
    coordinates: int | None = Field(
        default=None,
        ge=1,
        le=64,
        description="How many coordinates of each subspace's centres are sent, at most "
        "sub_dim. 1: as in the paper. As many as sub_dim: all, so that distances between "
        "the centres of a subspace are kept. More than one gives features away (a risk). "
        "Default: 2, or 1 if noise is added or sub_dim is 1.",
    )
    scaling: Literal["standard", "none"] = Field(
        default="standard",
        description="standard: each feature by its mean and spread, before it is "
        "quantised. none: as given.",
    )
    normalise: Literal["scale", "minmax"] = Field(
        default="scale",
        description="scale: the codes of each subspace keep their own spread, as the "
        "distances of pooled data do. minmax: all range from 0 to 1, as in the paper; "
        "several coordinates of a subspace have a common factor; the widest reaches 1.",
    )
    weights: Literal["rows", "centres"] = Field(
        default="rows",
        description="What the first coordinates of a subspace should separate best. rows: "
        "the quantised rows. centres: the centres, each counted once, as in the paper.",
    )
    privacy: Privacy = Field(default=Privacy(), json_schema_extra=PUBLISHED)
    n_init: KMeansStarts = 10
    max_iter: KMeansIterations = 300

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.coordinates or 1) > self.sub_dim:
            raise ValueError(
                f"coordinates is {self.coordinates}; a subspace of sub_dim "
                f"{self.sub_dim} has no more than that"
            )
        return self

    def check_prepared_columns(self, plans: Sequence[ColumnPlan]) -> None:
        """Raise if the scaling is not 'standard', or if noise is added to imputed values.

        The noise does not protect the pooled statistics by which missing values are
        replaced.
        """
        if self.scaling != "standard":
            raise InvalidParameters("preparation needs scaling 'standard'.")
        fields = [fill.name for plan in plans for fill in plan.fills]
        if self.privacy.mechanism != "none" and fields:
            raise InvalidParameters(
                f"missing values of {fields[0]!r} are imputed from figures of all "
                "rows without noise: leave such rows out (missing 'drop').",
                field="preparation",
            )

    def check_dictionary(self, dictionary: Sequence[Schema]) -> None:
        """Raise if noise is added but fields lack ranges.

        Ranges that are derived from rows would disclose rows.
        """
        if self.privacy.mechanism != "none":
            option = f"privacy.mechanism {self.privacy.mechanism!r}"
            check_finite_ranges(dictionary, option, wide=True)

    @property
    def n_coordinates(self) -> int:
        """Return how many coordinates are sent for each subspace."""
        default = 2 if self.privacy.mechanism == "none" else 1
        return self.coordinates or min(default, self.sub_dim)

    @property
    def epsilon_per_person(self) -> float:
        """Return a person's ε over all subspaces and parties; infinite without noise."""
        return math.inf if self.privacy.mechanism == "none" else self.privacy.epsilon


PqmdsSession = SessionContext[ProductQuantisation]
PqmdsContext = PartyContext[ProductQuantisation]


def subspaces_of(
    params: ProductQuantisation, n_features: int
) -> list[tuple[slice, int]]:
    """Return the features of each subspace, in order, and its number of coordinates.

    The last subspace may have fewer features; the paper pads it with zeros. A single
    remaining feature joins the previous subspace instead, because codes of its own
    would reveal it. That subspace has one more coordinate if all coordinates are sent.

    The result depends only on the terms and the number of features, so that the analyst
    can compute it too. If the centres of a subspace span fewer dimensions, the other
    coordinates are zeros.
    """
    sub_dim, n_coordinates = params.sub_dim, params.n_coordinates
    begins = list(range(0, n_features, sub_dim))
    if 1 < sub_dim < n_features and n_features % sub_dim == 1:
        begins.pop()
    return [
        (
            slice(begin, end),
            end - begin
            if n_coordinates == sub_dim
            else min(n_coordinates, end - begin),
        )
        for begin, end in pairwise([*begins, n_features])
    ]


def count_codes(params: ProductQuantisation, n_features: int) -> int:
    """Return the number of codes that a party with n_features features sends for a row."""
    return sum(width for _, width in subspaces_of(params, n_features))


def n_codes_of(session: PqmdsSession) -> dict[str, int]:
    """Return the number of codes that each slot sends for one row."""
    widths = {slot: session.member(slot).n_columns for slot in session.slots}
    return {slot: count_codes(session.params, m) for slot, m in widths.items()}
