"""Product quantisation with one-dimensional scaling (Wang, Zhang, Chen)."""

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
    roles_of,
    to,
)
from clustering_protocols.contract.sizing import Sizes
from clustering_protocols.shared_stages.alignment import row_alignment
from clustering_protocols.terms import session_risks
from clustering_protocols.terms.terms import Layout

from .methods import METHODS
from .params import PqmdsSession, Privacy, ProductQuantisation
from .risks import LEARNS, RISKS

__all__ = ["PROTOCOL", "Privacy", "ProductQuantisation"]


_CODES = 0.5
"""The largest deviation of numbers within a range of 1."""

_role = roles_of(__name__)


class ProductQuantisationProtocol(ClusteringProtocol[ProductQuantisation]):
    """One upload of a few numbers per sub-vector; k-means on all of them."""

    title = "Product quantisation with one-dimensional scaling"
    version = 2
    summary = (
        "Columns split. Each party replaces a few features at a time by one coordinate "
        "(or, as the terms say, several) of the nearest of some centres, which stay at "
        "home, and uploads the coordinates once; the analyst clusters them."
    )
    params = ProductQuantisation
    paper = (
        "Wang, J., Zhang, J., Chen, X. (2025). A privacy-enhanced multi-"
        "stage dimensionality reduction vertical federated clustering "
        "framework. Electronics 14 (16), 3182. "
        "doi:10.3390/electronics14163182."
    )
    partitionings = ("vertical",)
    learns: ClassVar = LEARNS
    risks: ClassVar = RISKS

    methods: ClassVar = METHODS

    def check(self, params: ProductQuantisation, layout: Layout) -> None:
        """Refuse split rows."""
        if layout.n_row_groups > 1:
            raise InvalidParameters(
                "pqmds takes split columns: the codes of two parties with different "
                "rows of the same features come from different codebooks."
            )
        row_alignment.check(params, layout)

    def check_roster(self, session: PqmdsSession) -> None:
        """Refuse more clusters than rows."""
        from . import subspaces

        subspaces.check_roster(session)

    def cautions(
        self, params: ProductQuantisation, layout: Layout, widths: Sequence[int]
    ) -> Sequence[str]:
        """Say where noise drowns the codes: they deviate by half their range at most."""
        from . import subspaces

        if params.privacy.mechanism == "none":
            return ()
        n_codes = sum(
            codes * len(layout.column_group(column))
            for column, width in enumerate(widths)
            for _, codes in subspaces.of(params, width)
        )
        least = 2**0.5 * n_codes / params.privacy.epsilon  # of laplace noise
        if least <= _CODES:
            return ()
        sentence = (
            f"Noise of {n_codes} codes under ε = {params.privacy.epsilon:g} deviates by "
            f"{least:.2g} of their range, more than codes can: clusters are lost. Raise "
            "epsilon, or send fewer codes (sub_dim, coordinates)."
        )
        return (sentence,)

    def risks_of(self, params: ProductQuantisation, layout: Layout) -> Sequence[str]:
        """Return the risk codes that parameters and layout bring."""
        codes = ["by-design"]
        if len(layout.slots) > 1:
            codes.append("collusion")
        if params.sub_dim == 1:
            codes.append("single-feature-codes")
        if params.coordinates > 1:
            codes.append("codes-give-features")
        if params.privacy.mechanism != "none":
            codes.append("noise-covers-one-row-once")
        return [
            *codes,
            *row_alignment.risks(params, layout),
            session_risks.BY_DESIGN,
        ]

    def personal_data(self, layout: Layout) -> str:
        """Say that the upload is of single people."""
        return (
            "A few numbers for each person are sent, rounded to codes: data of single "
            "people, without names or ids."
        )

    def shows(
        self, params: ProductQuantisation, layout: Layout
    ) -> frozenset[Disclosure]:
        """Return codes, outside: several coordinates of a subspace are its rows."""
        shown = to(Reader.OUTSIDE, Kind.VALUES, Kind.LABELS)
        if params.coordinates > 1:
            shown |= to(Reader.OUTSIDE, Kind.GEOMETRY)
        return shown | to(Reader.GROUP, Kind.LABELS, Kind.MEANS)

    def stages(self, params: ProductQuantisation, layout: Layout) -> Sequence[Stage]:
        """Return secrets, alignment, the upload."""
        from clustering_protocols.shared_stages import secrets

        from . import messages

        upload = Stage(
            name="upload",
            analyst=_role("analyst:PqmdsAnalyst"),
            party=_role("party:Encoder"),
            exchanges=(Exchange(messages.Encode, messages.RowCodes, shows=True),),
            results=(messages.Clusters, messages.Summary),
        )
        return (
            secrets.stage("row", "column"),
            *row_alignment.stages(params, layout),
            upload,
        )

    def sizes(self) -> Sizes[ProductQuantisation]:
        """Return bytes, memory and work."""
        from .needs import PqmdsSizes

        return PqmdsSizes()

    def reference(self) -> PooledReference[ProductQuantisation]:
        """Return examples, and the pooled run."""
        from . import reference

        return reference


PROTOCOL = ProductQuantisationProtocol()
