"""OmniFC: exact distances from encoded shares (Yan, Liu and Zhang, "OmniFC")."""

from collections.abc import Sequence
from typing import ClassVar

from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.contract import (
    USUAL_FIGURES,
    ClusteringProtocol,
    Example,
    Exchange,
    Kind,
    Reader,
    Relay,
    Shown,
    Stage,
    Trace,
    role,
    to,
)
from clustering_protocols.preparation import shared_risks
from clustering_protocols.preparation.statistics import pooling
from clustering_protocols.sizing import Extent, Needs
from clustering_protocols.terms import Layout

from .methods import METHODS
from .params import OmniFC, OmniSession

__all__ = ["PROTOCOL", "OmniFC"]


class OmniFCProtocol(ClusteringProtocol[OmniFC]):
    """Shares of rows among the parties; distances between shares to the analyst."""

    title = "OmniFC: distances by Lagrange coded computing"
    summary = (
        "Rows split. Each party shares its rows out among all parties, mixed with noise; "
        "each uploads the distances between the shares that it holds; the analyst "
        "decodes the exact distances between all rows and clusters."
    )
    params = OmniFC
    partitionings = ("horizontal",)
    learns: ClassVar = {
        "analyst": (
            "Numbers of rows and features, the distances between all rows, and with them "
            "the rows up to a rotation, a reflection and a shift."
        ),
        "party": (
            "The cluster of each of its rows, the sizes of all clusters and, where "
            "parties pool them, mean and spread (minmax: range) of each feature over all "
            "parties."
        ),
        "as many parties as `noise` says, together": "Nothing more.",
        "coordinator": "Cluster sizes, positions of the starts, the precision.",
    }
    risks: ClassVar = {
        "distances-are-data-up-to-motion": (
            "The analyst learns the distances between all rows, which are the data up to "
            "a rotation, a reflection and a shift. Features of two values (yes or no) and "
            "missing values that were filled show there. Where numbers are rounded, as "
            "measurements are, it finds all features in the distances alone, but for "
            "signs and an offset: 27 of 27 of three tables of 4 to 13 features. Terms "
            "that say jitter prevent that. Who knows one row more than there are "
            "features, of any party (or the landmarks, where these are drawn), computes "
            "all other rows."
        ),
        "analyst-learns-segments-distances": (
            "The analyst also learns the distances within each segment of the features "
            "(segments of one feature: their values up to sign and shift), and "
            "combinations of segments."
        ),
        "colluding-parties-open-rows": (
            "More parties together than `noise` says learn about your rows; as many as "
            "`segments` and `noise` together rebuild them."
        ),
        pooling.RISK_CODE: (
            "The leader (first party) sees your number of rows and the range of each "
            "of your features."
        ),
        **shared_risks.RISKS,
    }
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
        return lagrange.needed(params.segments, params.noise)

    def figures(self, params: OmniFC, layout: Layout) -> frozenset[str]:
        """Return the usual ones, the silhouette of few rows, those of memberships."""
        from . import limits

        fuzzy = {"partition_coefficient", "xie_beni"}
        several = fuzzy if params.algorithm == "fuzzy_cmeans" else set()
        silhouette = {"silhouette"} if limits.measures_silhouette(params) else set()
        return USUAL_FIGURES | silhouette | several

    def risks_of(self, params: OmniFC, layout: Layout) -> Sequence[str]:
        """Return the risk codes that parameters and layout bring."""
        codes = ["distances-are-data-up-to-motion"]
        if not params.hide_segments:
            codes.append("analyst-learns-segments-distances")
        codes.append("colluding-parties-open-rows")
        pooled = _pooled_statistics(params)
        if pooling.shows_own(layout, **pooled):
            codes.append(pooling.RISK_CODE)
        totals = pooling.masks(layout, **pooled)
        return codes + shared_risks.brought(layout, totals=totals, labels=True)

    def shows(self, params: OmniFC, layout: Layout) -> frozenset[Shown]:
        """Return rows up to a motion, outside; open segments may be single features."""
        shown = to(Reader.OUTSIDE, Kind.GEOMETRY, Kind.LABELS)
        if not params.hide_segments:
            shown |= to(Reader.OUTSIDE, Kind.VALUES)
        shown |= to(Reader.GROUP, Kind.LABELS)
        return shown | pooling.shows(layout, **_pooled_statistics(params))

    def stages(self, params: OmniFC, layout: Layout) -> Sequence[Stage]:
        """Return secrets, alignment, statistics if needed, shares, distances."""
        from clustering_protocols.preparation import secrets
        from clustering_protocols.preparation.alignment import digests

        from . import messages

        shares = Stage(
            name="shares",
            analyst=lambda: Relay(messages.Share()),
            party=role(__name__, "sharing.SharingParty"),
            exchanges=(Exchange(messages.Share, messages.Shared),),
            envelopes=(messages.RowShares,),
        )
        least = 1 if params.hide_segments else 0  # fewer answers may suffice
        distances = Stage(
            name="distances",
            analyst=role(__name__, "analyst.Decoder"),
            party=role(__name__, "party.Comparer"),
            exchanges=(Exchange(messages.Compare, messages.Answer, least, shows=True),),
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

    def needs(self, params: OmniFC, extent: Extent) -> Needs:
        """Return bytes, memory and work."""
        from . import needs

        return needs.needs(params, extent)

    def most_rows(self, params: OmniFC, n_features: int) -> int:
        """Return max_rows, or fewer where their distances exceed memory_limit."""
        from . import limits

        fit = limits.most_rows(
            lambda n: limits.analyst_bytes(params, n, n_features), params.memory_limit
        )
        return min(params.max_rows, fit)

    def beyond(self, params: OmniFC) -> str:
        """Return which of landmarks, max_rows and memory_limit help."""
        if params.distances == "all":
            return (
                "Distances between all rows grow with the square of their number: take "
                "distances 'landmarks', or raise max_rows and memory_limit."
            )
        return "Raise max_rows, and memory_limit where it takes more."

    def examples(self) -> Sequence[Example[OmniFC]]:
        """Return the defaults, the paper's settings, and each alternative."""
        from . import examples

        return examples.examples()

    def pooled(
        self, params: OmniFC, X: FloatArray, trace: Trace[OmniFC] | None
    ) -> IntArray:
        """Return labels of the same algorithm on the pooled features."""
        from . import pooled

        return pooled.labels(params, X, trace)


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
