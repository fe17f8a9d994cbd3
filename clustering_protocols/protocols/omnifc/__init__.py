"""OmniFC: exact distances from encoded shares (Yan, Liu and Zhang, "OmniFC")."""

from collections.abc import Sequence
from typing import ClassVar

from clustering_protocols.contract import (
    USUAL_FIGURES,
    ClusteringProtocol,
    Disclosure,
    Exchange,
    Kind,
    PooledReference,
    Reader,
    Relay,
    Stage,
    roles_of,
    to,
)
from clustering_protocols.contract.sizing import Sizes
from clustering_protocols.shared_stages.statistics import pooling
from clustering_protocols.terms import session_risks
from clustering_protocols.terms.terms import Layout

from .methods import METHODS
from .params import OmniFC, OmniSession
from .risks import LEARNS, RISKS

__all__ = ["PROTOCOL", "OmniFC"]

_role = roles_of(__name__)


class OmniFCProtocol(ClusteringProtocol[OmniFC]):
    """Shares of rows among the parties; distances between shares to the analyst."""

    title = "OmniFC: distances by Lagrange coded computing"
    version = 2
    summary = (
        "Rows split. Each party shares its rows out among all parties, mixed with noise; "
        "each uploads the distances between the shares that it holds; the analyst "
        "decodes the exact distances between all rows and clusters."
    )
    params = OmniFC
    paper = (
        "Yan, J., Liu, X., Zhang, Z.-Y. OmniFC: Rethinking federated "
        "clustering via lossless and secure distance reconstruction."
    )
    partitionings = ("horizontal",)
    learns: ClassVar = LEARNS
    risks: ClassVar = RISKS
    choices: ClassVar = {
        "memory_limit": "Bytes that a round may take here; 3 GiB unless you say else.",
    }

    methods: ClassVar = METHODS

    apart: ClassVar = "Lower fuzziness, to 1.1 say, or ask for fewer clusters."

    def check(self, params: OmniFC, layout: Layout) -> None:
        """Refuse parties, segments, noise, digits and rows that do not fit together."""
        from . import limits

        limits.check(params, layout)

    def check_roster(self, session: OmniSession) -> None:
        """Refuse rows, features or clusters that the terms have no room for."""
        from . import limits

        limits.check_roster(session)

    def quorum(self, params: OmniFC, layout: Layout) -> int:
        """Return how many answers suffice: all, where segments are hidden."""
        from . import lagrange

        if params.hide_segments:
            return len(layout.slots)
        return lagrange.count_needed_values(params.segments, params.noise)

    def figures(self, params: OmniFC, layout: Layout) -> frozenset[str]:
        """Return the usual ones, the silhouette of few rows, those of memberships."""
        from . import limits

        fuzzy = {"partition_coefficient", "xie_beni"}
        several = fuzzy if params.algorithm == "fuzzy_cmeans" else set()
        silhouette = {"silhouette"} if limits.measures_silhouette(params) else set()
        return USUAL_FIGURES | silhouette | several

    def risks_of(self, params: OmniFC, layout: Layout) -> Sequence[str]:
        """Return the risk codes that parameters and layout bring."""
        codes = ["by-design", "collusion"]
        if not params.hide_segments:
            codes.append("analyst-learns-segments-distances")
        codes += pooling.risks(layout, **_pooled_statistics(params))
        return [*codes, session_risks.BY_DESIGN]

    def personal_data(self, layout: Layout) -> str:
        """Say that the upload is of single people."""
        return (
            "The analyst reads the distances between all people: data of single "
            "people, without names or ids."
        )

    def shows(self, params: OmniFC, layout: Layout) -> frozenset[Disclosure]:
        """Return rows up to a motion, outside, where coarse steps show single features."""
        shown = to(Reader.OUTSIDE, Kind.GEOMETRY, Kind.VALUES, Kind.LABELS)
        shown |= to(Reader.GROUP, Kind.LABELS)
        return shown | pooling.shows(layout, **_pooled_statistics(params))

    def stages(self, params: OmniFC, layout: Layout) -> Sequence[Stage]:
        """Return secrets, alignment, statistics if needed, shares, distances."""
        from clustering_protocols.shared_stages import secrets
        from clustering_protocols.shared_stages.alignment import digests

        from . import messages

        shares = Stage(
            name="shares",
            analyst=lambda: Relay(messages.EncodeRows()),
            party=_role("sharing:SharingParty"),
            exchanges=(Exchange(messages.EncodeRows, messages.SharesSent),),
            envelopes=(messages.RowShares,),
        )
        least = 1 if params.hide_segments else 0  # fewer answers may suffice
        distances = Stage(
            name="distances",
            analyst=_role("analyst:Decoder"),
            party=_role("party:Comparer"),
            exchanges=(
                Exchange(
                    messages.Compare, messages.EncodedDistances, least, shows=True
                ),
            ),
            results=(
                messages.RowGroupLabels,
                messages.RowGroupMemberships,
                messages.Summary,
            ),
            results_to="row",
        )
        return (
            secrets.stage("row", "column"),
            digests.stage(),
            *pooling.stages(layout, **_pooled_statistics(params)),
            shares,
            distances,
        )

    def sizes(self) -> Sizes[OmniFC]:
        """Return bytes, memory and work."""
        from .needs import OmniFcSizes

        return OmniFcSizes()

    def reference(self) -> PooledReference[OmniFC]:
        """Return examples, and the pooled run."""
        from . import reference

        return reference


def _pooled_statistics(params: OmniFC) -> dict[str, bool]:
    """Return which statistics parties pool: those that no dictionary tells.

    Unscaled features take moments too, as bounds of their values. Ranges take
    envelopes to the leader, so minmax alone asks for them.
    """
    pooled = params.ranges == "pooled"
    return {
        "moments": pooled and params.scaling in {"standard", "none"},
        "ranges": pooled and params.scaling == "minmax",
    }


PROTOCOL = OmniFCProtocol()
