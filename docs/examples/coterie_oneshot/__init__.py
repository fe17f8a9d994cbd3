"""The protocol of one upload (Dennis, Li and Smith, "Heterogeneity for the win", 2021).

Each party uploads the centres of its own clusters, the analyst clusters the centres, and
each party computes its labels locally. Strings name the roles, so that a process that
only reads messages imports no mathematics.
"""

from collections.abc import Sequence
from typing import ClassVar

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.contract import (
    ClusteringProtocol,
    Disclosure,
    Exchange,
    Kind,
    PooledReference,
    Reader,
    Stage,
    disclosures_to,
    role_factories,
)
from clustering_protocols.terms.session_risks import Harm, Risk, RiskLevel
from clustering_protocols.terms.terms import Layout

from .params import OneShot

__all__ = ["PROTOCOL", "OneShot"]

_role = role_factories(__name__)
_LEARNS = {"analyst": "Centres and sizes of each party.", "party": "All centres."}


class OneShotProtocol(ClusteringProtocol[OneShot]):
    """A protocol that clusters the centres of all parties."""

    title = "One shot"
    summary = "Each party uploads the centres of its rows, once."
    params = OneShot
    partitionings = ("horizontal",)
    learns: ClassVar = _LEARNS
    risks: ClassVar = {
        "by-design": Risk(
            level=RiskLevel.DESIGN,
            harm=Harm.STATISTICS,
            sentence="The analyst reads the mean and the size of each of your clusters.",
            remedy="The protocol llf, whose sums are masked.",
            readers=tuple(_LEARNS.items()),
        )
    }

    def check_params(self, params: OneShot, layout: Layout) -> None:
        """Refuse split columns."""
        if layout.n_column_groups > 1:
            raise InvalidParameters("oneshot accepts only split rows.")

    def risks_of(self, params: OneShot, layout: Layout) -> Sequence[str]:
        """Return the only risk code."""
        return list(self.risks)

    def disclosures(self, params: OneShot, layout: Layout) -> frozenset[Disclosure]:
        """Declare that the analyst and the parties read means."""
        return disclosures_to(Reader.OUTSIDE, Kind.MEANS) | disclosures_to(
            Reader.GROUP, Kind.MEANS
        )

    def stages(self, params: OneShot, layout: Layout) -> Sequence[Stage]:
        """Return the only stage."""
        from . import messages

        upload = Stage(
            name="upload",
            analyst=_role("analyst:Merger"),
            party=_role("party:Uploader"),
            exchanges=(Exchange(messages.Upload, messages.Centres),),
            results=(messages.Result,),
            results_to="all",
        )
        return (upload,)

    def reference(self) -> PooledReference[OneShot]:
        """Return the module with the example and the pooled method."""
        from . import reference

        return reference


PROTOCOL = OneShotProtocol()
