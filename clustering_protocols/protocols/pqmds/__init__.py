"""Product quantisation with one-dimensional scaling (Wang, Zhang, Chen)."""

from collections.abc import Sequence
from typing import ClassVar

from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.contract import (
    AnalystRole,
    ClusteringProtocol,
    Example,
    PartyRole,
    Stage,
    Trace,
)
from clustering_protocols.errors import InvalidParameters
from clustering_protocols.preparation import aligning
from clustering_protocols.terms import Layout

from .methods import METHODS
from .params import Privacy, ProductQuantisation

__all__ = ["PROTOCOL", "Privacy", "ProductQuantisation"]


class ProductQuantisationProtocol(ClusteringProtocol[ProductQuantisation]):
    """One upload of one number per sub-vector; k-means on all of them."""

    title = "Product quantisation with one-dimensional scaling"
    summary = (
        "Columns split. Each party replaces a few features at a time by one coordinate "
        "of the nearest of some centres, which stay at home, and uploads the "
        "coordinates once; the analyst clusters them."
    )
    params = ProductQuantisation
    partitionings = ("vertical",)
    learns: ClassVar = {
        "analyst": (
            "Numbers of rows and features; for each row, in a secret order, one "
            "coordinate per subspace: which rows share a cell there, and how far cells "
            "lie apart along one direction."
        ),
        "party": (
            "The cluster of each of its rows, the sizes of all clusters, and the "
            "clusters' centres in its own codes."
        ),
        "coordinator": "Cluster sizes, the inertia, positions of the starts.",
    }
    risks: ClassVar = {
        "codes-show-cells": (
            "The analyst sees which of your rows share a cell of each subspace and how "
            "cells lie along one direction; who knows the distribution of your features "
            "can place rows along it."
        ),
        "colluding-party-names-rows": (
            "The other parties know the order in which rows travel: one of them together "
            "with the analyst knows whose codes are whose."
        ),
        "single-feature-codes": (
            "Each feature has codes of its own (sub_dim 1): from a public sample of the "
            "feature the analyst recovers its values up to the width of a cell."
        ),
        **aligning.RISKS,
    }

    choices: ClassVar = {
        "epsilon_limit": "The largest ε that the people of this data may cost in all.",
        "epsilon_spent": "What earlier sessions on the same people have cost of it.",
    }

    methods: ClassVar = METHODS

    def check(self, params: ProductQuantisation, layout: Layout) -> None:
        """Refuse split rows."""
        if layout.n_row_groups > 1:
            raise InvalidParameters(
                "pqmds takes split columns: the codes of two parties with different "
                "rows of the same features come from different codebooks."
            )
        aligning.check(params, layout)

    def risks_of(self, params: ProductQuantisation, layout: Layout) -> Sequence[str]:
        """Return the risk codes that parameters and layout bring."""
        codes = ["codes-show-cells"]
        if len(layout.slots) > 1:
            codes.append("colluding-party-names-rows")
        if params.sub_dim == 1:
            codes.append("single-feature-codes")
        return codes + aligning.risks(params)

    def stages(self, params: ProductQuantisation, layout: Layout) -> Sequence[Stage]:
        """Return secrets, alignment, the upload."""
        from clustering_protocols.preparation import secrets

        from . import messages

        upload = Stage(
            name="upload",
            analyst=_analyst,
            party=_encoder,
            records=(
                messages.Encode,
                messages.Codes,
                messages.Waiting,
                messages.Clusters,
                messages.Summary,
            ),
        )
        return (secrets.stage("row", "column"), *aligning.stages(params), upload)

    def examples(self) -> Sequence[Example[ProductQuantisation]]:
        """Return the defaults, the paper's setting, and features left over."""
        from . import examples

        return examples.examples()

    def pooled(
        self, params: ProductQuantisation, X: FloatArray, trace: Trace | None
    ) -> IntArray:
        """Return k-means labels on the pooled features."""
        from . import pooled

        return pooled.labels(params, X, trace.summary if trace else None)


# Imported when they are played: whoever only reads parameters, risks and messages does
# not wait for the mathematics


def _analyst() -> AnalystRole:
    from .analyst import PqmdsAnalyst

    return PqmdsAnalyst()


def _encoder() -> PartyRole:
    from .party import Encoder

    return Encoder()


PROTOCOL = ProductQuantisationProtocol()
