"""OmniFC: what a session discloses and risks, and for which data it is suitable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from clustering_protocols.common.errors import InvalidParameters, ProtocolFailed
from clustering_protocols.common.suitability import Method, RoundBudget, Shape
from clustering_protocols.contract import (
    USUAL_FIGURES,
    ClusteringProtocol,
    Disclosure,
    Exchange,
    Kind,
    Reader,
    Stage,
    disclosures_to,
    role_factories,
)
from clustering_protocols.contract.sizing import Sizes
from clustering_protocols.shared_stages import statistics
from clustering_protocols.terms import session_risks
from clustering_protocols.terms.session_risks import Harm, Risk, RiskLevel
from clustering_protocols.terms.terms import Layout

from . import limits
from .params import OmniFC, OmniSession

LEARNS: Final = {
    "analyst": (
        "Numbers of rows and features, the distances between all rows, and with them "
        "the rows up to a rotation, a reflection and a shift; rounded features as they "
        "are, up to sign and offset. It alone computes the clusters, which no party "
        "can check."
    ),
    "party": (
        "The cluster of each of its rows, the sizes of all clusters and, where "
        "parties pool them, mean and standard deviation (minmax: range) of each "
        "feature over all parties."
    ),
    "as many parties as `noise` says, together": "Nothing more.",
    "coordinator": "Cluster sizes, positions of the starts, the precision.",
}
RISKS: Final[Mapping[str, Risk]] = {
    "by-design": Risk(
        level=RiskLevel.DESIGN,
        harm=Harm.GEOMETRY,
        sentence="The analyst learns the distances between all rows: the data up to "
        "rotation, reflection and shift.",
        measured="From rounded numbers, a search recovered all 27 features of three tables, "
        "and none of the 34 of two others.",
        remedy="A method that sends no rows, such as llf over split rows.",
        detail="Features with two values (yes or no) and imputed missing values show in the "
        "distances. If numbers are rounded, as measurements are, the analyst may recover "
        "the features from the distances alone, except for signs and an offset.",
        readers=tuple(LEARNS.items()),
    ),
    "collusion": Risk(
        level=RiskLevel.COLLUSION,
        harm=Harm.ROWS_JOINTLY,
        sentence="More than `noise` parties that collude learn about your rows; an analyst "
        "who knows enough rows, or those of one party, can compute all others.",
        remedy="A larger `noise`, which needs more parties.",
        detail="If `segments` plus `noise` parties collude, they rebuild your rows. Anyone "
        "who has the distances can compute all rows from a few known ones, one more than "
        "there are features, or from the landmarks if these are drawn. An analyst that "
        "colludes with a party also reads pooled totals, and can falsify them.",
    ),
    "analyst-learns-segments-distances": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.ROWS,
        sentence="The analyst also learns the distances within each segment; a segment "
        "of one feature shows its values up to sign and shift.",
        remedy="hide_segments true, the default.",
        detail="It learns combinations of segments too.",
    ),
}


def _method(name: str, *shapes: Shape) -> Method:
    return Method(
        name=name,
        partitionings=("horizontal",),
        shapes=shapes,
        rounds=RoundBudget.FEW,
        params={} if name == "kmeans" else {"algorithm": name},
        counted=name != "dbscan",
        agreement={"horizontal": (1.0, 1.0)},
    )


METHODS = (
    _method("kmeans", "spherical"),
    _method("fuzzy_cmeans", "fuzzy"),
    _method("kmedoids", "spherical"),
    _method("spectral", "arbitrary"),
    _method("dbscan", "arbitrary"),
    _method("hierarchical", "spherical", "arbitrary"),
)


_role = role_factories(__package__)


class OmniFCProtocol(ClusteringProtocol[OmniFC]):
    """Parties exchange shares of rows, and send the analyst distances between shares."""

    title = "OmniFC: distances by Lagrange coded computing"
    version = 2
    summary = (
        "Rows are split. Each party distributes shares of its rows, mixed with noise, to "
        "all parties; each uploads the distances between the shares that it holds; the "
        "analyst decodes the exact distances between all rows and clusters the rows."
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
        "memory_limit": "Bytes that a round may take here; 3 GiB by default.",
    }

    methods: ClassVar = METHODS

    apart: ClassVar = "Lower fuzziness, to 1.1 say, or ask for fewer clusters."

    def check_params(self, params: OmniFC, layout: Layout) -> None:
        """Raise unless the numbers of parties, segments and rows fit together."""
        if layout.n_column_groups > 1:
            raise InvalidParameters(
                f"omnifc splits only rows; the layout has {layout.n_column_groups} "
                "column groups."
            )
        n_parties = len(layout.slots)
        if n_parties < params.needed_answers:
            limit = (n_parties + 1) // 2
            remedy = (
                f"{n_parties} parties suffice for segments + noise of at most {limit}."
                if limit >= 2
                else "Even segments = noise = 1 needs 3."
            )
            raise InvalidParameters(
                f"segments = {params.segments} and noise = {params.noise} need "
                f"{params.needed_answers} parties; the layout has {n_parties}. {remedy}"
            )
        n_bytes = limits.analyst_bytes(params, params.max_rows, n_features=1)
        if n_bytes > params.memory_limit:
            fit = limits.rows_that_fit(params, n_features=1)
            raise InvalidParameters(
                f"max_rows = {params.max_rows} takes {n_bytes} bytes at the analyst; "
                f"memory_limit is {params.memory_limit}, enough for max_rows = {fit}."
            )

    def check_roster(self, session: OmniSession) -> None:
        """Raise if there are more rows, features or clusters than the terms allow."""
        params = session.params
        n, d = limits.size_of(session)
        if n > params.max_rows:
            raise ProtocolFailed(
                f"The parties have {n} rows; max_rows is {params.max_rows}."
            )
        n_bytes = limits.analyst_bytes(params, n, d)
        if n_bytes > params.memory_limit:
            raise ProtocolFailed(
                f"{n} rows of {d} features take {n_bytes} bytes; memory_limit is "
                f"{params.memory_limit}, enough for {limits.rows_that_fit(params, d)} rows."
            )
        k = params.n_clusters
        if k is not None and k > n:
            raise ProtocolFailed(f"n_clusters is {k}; there are {n} rows.")

    def quorum(self, params: OmniFC, layout: Layout) -> int:
        """Return how many answers suffice: all of them if segments are hidden."""
        if params.hide_segments:
            return len(layout.slots)
        return params.needed_answers

    def figures(self, params: OmniFC, layout: Layout) -> frozenset[str]:
        """Return the names of the standard quality figures, and of others if computed."""
        figures = set(USUAL_FIGURES)
        if params.algorithm == "fuzzy_cmeans":
            figures |= {"partition_coefficient", "xie_beni"}
        if limits.measures_silhouette(params):
            figures.add("silhouette")
        return frozenset(figures)

    def risks_of(self, params: OmniFC, layout: Layout) -> Sequence[str]:
        """Return the risk codes that follow from the parameters and the layout."""
        codes = ["by-design", "collusion"]
        if not params.hide_segments:
            codes.append("analyst-learns-segments-distances")
        codes += statistics.risk_codes(layout, **_pooled_statistics(params))
        return [*codes, session_risks.BY_DESIGN]

    def personal_data(self, layout: Layout) -> str:
        """State that the analyst learns the distances between all people."""
        return (
            "The analyst reads the distances between all people: data of single "
            "people, without names or ids."
        )

    def disclosures(self, params: OmniFC, layout: Layout) -> frozenset[Disclosure]:
        """Return the disclosures: rows up to a rigid motion and, if rounded, features."""
        return (
            disclosures_to(Reader.OUTSIDE, Kind.GEOMETRY, Kind.VALUES, Kind.LABELS)
            | disclosures_to(Reader.GROUP, Kind.LABELS)
            | statistics.disclosures(layout, **_pooled_statistics(params))
        )

    def stages(self, params: OmniFC, layout: Layout) -> Sequence[Stage]:
        """Return the stages: secrets, alignment, any statistics, shares, distances."""
        from clustering_protocols.shared_stages import secrets
        from clustering_protocols.shared_stages.alignment import digests

        from . import messages

        shares = Stage.relaying(
            Exchange(messages.EncodeRows, messages.SharesSent),
            name="shares",
            party=_role("party:SharingParty"),
            envelopes=(messages.RowShares,),
        )
        # otherwise a late party might get no task
        minimum = 1 if params.hide_segments else 0
        distances = Stage(
            name="distances",
            analyst=_role("analyst:Decoder"),
            party=_role("party:Comparer"),
            exchanges=(Exchange(messages.Compare, messages.EncodedDistances, minimum),),
            results=(
                messages.RowGroupLabels,
                messages.RowGroupMemberships,
                messages.Summary,
            ),
            results_to="row",
        )
        return (
            secrets.build_stage("row", "column"),
            digests.build_stage(),
            *statistics.build_stages(layout, **_pooled_statistics(params)),
            shares,
            distances,
        )

    def sizing(self) -> Sizes[OmniFC]:
        """Return the estimates of upload and memory."""
        return limits.OmniFcSizes()


def _pooled_statistics(params: OmniFC) -> dict[str, bool]:
    """Return which statistics parties pool; none if the dictionary declares ranges.

    Moments are pooled for unscaled features too, because moments bound the values.
    Ranges are pooled only for scaling 'minmax', because the leader learns each party's
    range from pooling.
    """
    pooled = params.ranges == "pooled"
    return {
        "moments": pooled and params.scaling in {"standard", "none"},
        "ranges": pooled and params.scaling == "minmax",
    }


PROTOCOL = OmniFCProtocol()
