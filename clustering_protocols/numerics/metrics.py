"""Internal quality measures of a clustering."""

from __future__ import annotations

import math
from typing import Any, Final

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from clustering_protocols.records.record import Record

DIGITS: Final = 6
"""The number of significant digits in published figures."""
_WRITTEN_AS_NULL: Final = frozenset({
    "inertia", "simplified_silhouette", "silhouette", "calinski_harabasz",
    "davies_bouldin", "partition_coefficient", "xie_beni", "criterion", "gap",
    "gap_error", "gap_of_one", "stability", "prediction_strength", "n_iter", "converged",
})  # fmt: skip
"""Figures of the first release, which are written as null if they are absent.

Figures that were added later are omitted instead, so that stored records stay identical.
"""


class Figures(Record):
    """Quality figures of one clustering; a figure is None if undefined or unknown.

    n_clusters: the number of non-empty clusters.
    inertia: the sum of squared distances of rows to the mean of their cluster.
    simplified_silhouette: the mean over rows of (b - a) / max(a, b), where a and b are
        the distances to the means of the row's own and of the nearest other cluster (E.
        R. Hruschka, L. N. de Castro, R. J. G. B. Campello, "Evolutionary algorithms for
        clustering gene-expression data", 2004).
    silhouette: the same mean, where a and b are mean distances to the rows of these
        clusters (P. J. Rousseeuw, 1987).
    calinski_harabasz: T. Caliński and J. Harabasz, 1974.
    davies_bouldin: D. L. Davies and D. W. Bouldin, 1979.
    partition_coefficient: the mean over rows of Σ_c μ_c² (J. C. Bezdek, 1973).
    xie_beni: X. L. Xie and G. Beni, 1991.
    criterion: the value that the algorithm itself optimises, if it is not the inertia.
    aic, bic, icl: information criteria of mixtures by Akaike (1974), Schwarz (1978),
        and Biernacki, Celeux and Govaert (2000).
    entropy: the entropy of the memberships of a mixture, divided by its maximum n log
        k; 0 if every row belongs to one cluster.
    gap, gap_error: the gap statistic and the standard error of its reference;
        gap_of_one is the gap of a single cluster (R. Tibshirani, G. Walther, T. Hastie,
        2001). Only for sessions with several runs.
    stability: the mean adjusted Rand index of clusterings of random halves of the rows.
        Only for several runs.
    prediction_strength: the smallest proportion, over the clusters of half the rows, of
        pairs that the other half keeps together (R. Tibshirani, G. Walther, 2005). Only
        for several runs.
    n_iter: the number of updates.
    converged: whether the algorithm stopped before its iteration limit.
    """

    kind = "figures"

    n_clusters: int = Field(ge=1)
    inertia: float | None = Field(default=None, ge=0)
    simplified_silhouette: float | None = Field(default=None, ge=-1, le=1)
    silhouette: float | None = Field(default=None, ge=-1, le=1)
    calinski_harabasz: float | None = Field(default=None, ge=0)
    davies_bouldin: float | None = Field(default=None, ge=0)
    partition_coefficient: float | None = Field(default=None, ge=0, le=1)
    xie_beni: float | None = Field(default=None, ge=0)
    criterion: float | None = None
    aic: float | None = None
    bic: float | None = None
    icl: float | None = None
    entropy: float | None = Field(default=None, ge=0, le=1)
    gap: float | None = None
    gap_error: float | None = Field(default=None, ge=0)
    gap_of_one: float | None = None
    stability: float | None = Field(default=None, ge=-1, le=1)
    prediction_strength: float | None = Field(default=None, ge=0, le=1)
    n_iter: int | None = Field(default=None, ge=0)
    converged: bool | None = None

    @model_serializer(mode="wrap")
    def _dump_present(self, write: SerializerFunctionWrapHandler) -> Any:
        values = write(self).items()
        return {k: v for k, v in values if v is not None or k in _WRITTEN_AS_NULL}

    def round_values(self) -> Figures:
        """Return the figures with six significant digits, as they are published."""
        values = {
            name: float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
            for name, value in dict(self).items()
        }
        return Figures.model_validate(values)

    def agrees_with(self, published: Figures) -> bool:
        """Return whether published figures equal these up to rounding."""
        pairs = zip(self.values.values(), published.values.values(), strict=True)
        return all(
            math.isclose(
                value, published_value, rel_tol=10.0 ** (1 - DIGITS), abs_tol=1e-12
            )
            if isinstance(value, float) and isinstance(published_value, float)
            else value == published_value
            for value, published_value in pairs
        )
