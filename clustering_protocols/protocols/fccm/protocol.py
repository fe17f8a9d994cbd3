"""Fuzzy co-clustering: what a session requires, discloses and risks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from clustering_protocols.common.errors import InvalidParameters, ProtocolFailed
from clustering_protocols.common.limits import MINIMUM_MEMBERS
from clustering_protocols.common.suitability import Method, RoundBudget
from clustering_protocols.contract import (
    ClusteringProtocol,
    Disclosure,
    Exchange,
    Kind,
    Reader,
    Stage,
    disclosures_to,
    role_factories,
)
from clustering_protocols.contract.sizing import WORD, Extent, Sizes
from clustering_protocols.shared_stages import alignment
from clustering_protocols.terms import session_risks
from clustering_protocols.terms.session_risks import Harm, Risk, RiskLevel
from clustering_protocols.terms.terms import Layout

from .params import CoClustering, FccmSession, explain_excess_rounds

LEARNS: Final = {
    "analyst": (
        "Numbers of objects and items, how far the memberships move in each "
        "iteration and which starts have converged; for the best start, the sizes of "
        "clusters of at least ten objects, rounded to fives, the criterion and the "
        "partition coefficient."
    ),
    "party": (
        "In every iteration of every start, the memberships of all objects and the "
        "totals that determine them; the memberships of its own items."
    ),
    "coordinator": "What the analyst learns about the result.",
}
RISKS: Final[Mapping[str, Risk]] = {
    "by-design": Risk(
        level=RiskLevel.DESIGN,
        harm=Harm.ROWS_JOINTLY,
        sentence="Every site reads the memberships of all objects, and exact sums over "
        "the items of all sites in every iteration.",
        remedy="Fewer starts (n_init) and iterations show fewer sums.",
        detail="If a site subtracts its own share, it has a sum over the items of others. By "
        "default, a session is refused if sums could be solved for these items. Nearly crisp "
        "item memberships (a small lambda_w) reduce a sum to a single item.",
        readers=tuple(LEARNS.items()),
    ),
    "collusion": Risk(
        level=RiskLevel.COLLUSION,
        harm=Harm.ROWS_JOINTLY,
        sentence="If all other sites collude, they can subtract their shares and read your "
        "sums over items in every iteration.",
        remedy="More sites that you know; fewer starts (n_init) and iterations.",
        detail="Each start (n_init) adds as many equations. With many iterations and "
        "known rows they can rebuild your matrix. So can an analyst that colludes with a "
        "site: the two read the totals, and can falsify them.",
    ),
}


_TOTALS = 6  # arrays as large as a total: the total, shares to add, and both as bytes


class CoClusteringSizes(Sizes[CoClustering]):
    """Estimates how much a session of fuzzy co-clustering uploads and holds in memory."""

    def upload_bytes(self, params: CoClustering, extent: Extent) -> int:
        """Return the bytes of all updates, assuming that no start converges early."""
        return WORD * _count_words(params, extent) * (params.max_iter + 1)

    def memory_bytes(self, params: CoClustering, extent: Extent) -> int:
        """Return the bytes of one total, and of the shares from which it is summed."""
        return WORD * _TOTALS * _count_words(params, extent)


def _count_words(params: CoClustering, extent: Extent) -> int:
    from . import site_state

    return site_state.n_words(params, extent.rows, params.n_init)


METHODS = (
    Method(
        name="fccm",
        partitionings=("vertical",),
        shapes=("co-clusters", "fuzzy"),
        data="counts",
        rounds=RoundBudget.MANY,
        params={"small_cohorts": "allow"},
        agreement={"vertical": (1.0, 1.0)},
    ),
)


_role = role_factories(__package__)


class CoClusteringProtocol(ClusteringProtocol[CoClustering]):
    """Sites with split columns compute the pooled result of each start by masked sums."""

    title = "Collaborative fuzzy co-clustering"
    version = 2
    summary = (
        "Sites hold co-occurrences of the same objects with different items. Objects "
        "and items are clustered together by masked sums; item memberships stay at "
        "their site."
    )
    params = CoClustering
    paper = (
        "Honda, K., Oda, T., Tanaka, D., Notsu, A. (2015). A collaborative "
        "framework for privacy preserving fuzzy co-clustering of vertically"
        " distributed cooccurrence matrices."
    )
    partitionings = ("vertical",)
    learns: ClassVar = LEARNS
    risks: ClassVar = RISKS

    methods: ClassVar = METHODS

    in_simulations: ClassVar = {"small_cohorts": "allow"}

    apart: ClassVar = (
        "Make counts binary, or try other values of lambda_u and lambda_w."
    )

    def check_params(self, params: CoClustering, layout: Layout) -> None:
        """Raise if the layout splits rows, or has fewer than three sites."""
        if layout.n_row_groups > 1:
            raise InvalidParameters(
                "fccm needs split columns: sites that hold different items of the same "
                "objects."
            )
        if len(layout.slots) < MINIMUM_MEMBERS:
            raise InvalidParameters(
                f"fccm needs {MINIMUM_MEMBERS} sites: with two, each could subtract "
                "its own share from every total."
            )
        alignment.check_rows_are_shared(params, layout)

    def check_roster(self, session: FccmSession) -> None:
        """Raise if there are too few items for the number of rounds."""
        k = sum(run.n_clusters for run in session.runs)
        widths = [session.member(slot).n_columns for slot in session.slots]
        excess = explain_excess_rounds(session.params, k, widths)
        if excess:
            raise ProtocolFailed(excess)

    def figures(self, params: CoClustering, layout: Layout) -> frozenset[str]:
        """Return the names of the quality figures that need no centroids."""
        return frozenset({"criterion", "partition_coefficient"})

    def risks_of(self, params: CoClustering, layout: Layout) -> Sequence[str]:
        """Return the risk codes that follow from the parameters and the layout."""
        solvable = params.small_cohorts == "allow"
        return [
            "by-design",
            "collusion",
            *([session_risks.SOLVABLE] if solvable else []),
            *alignment.risk_codes(params, layout),
            session_risks.BY_DESIGN,
        ]

    def personal_data(self, layout: Layout) -> str:
        """State that sites send masked sums for each person."""
        return (
            "For each person, masked sums over your variables are sent; parties read "
            "the totals over all sites."
        )

    def disclosures(
        self, params: CoClustering, layout: Layout
    ) -> frozenset[Disclosure]:
        """Return the disclosures: sums, sizes, and columns if small_cohorts is 'allow'."""
        disclosures = disclosures_to(Reader.ALL, Kind.SUMS, Kind.LABELS)
        disclosures |= disclosures_to(Reader.OUTSIDE, Kind.SIZES)
        if params.small_cohorts == "allow":
            disclosures |= disclosures_to(Reader.ALL, Kind.GEOMETRY, Kind.VALUES)
        return disclosures

    def stages(self, params: CoClustering, layout: Layout) -> Sequence[Stage]:
        """Return the stages: secrets, alignment, and the iterations."""
        from clustering_protocols.shared_stages import secrets

        from . import messages, site_state

        n_sums = (params.max_iter + 1) * (site_state.MAX_REPEATS + 1)
        iterations = Stage(
            name=messages.UPDATES,
            analyst=_role("roles:FccmAnalyst"),
            party=_role("roles:FccmParty"),
            exchanges=(
                Exchange(messages.Add, messages.SiteShare, 1, n_sums),
                Exchange(messages.ReportSizes, messages.SizeReport),
            ),
            results=(messages.Done, messages.Summary),
            results_to="all",
            each_run=True,
        )
        return (
            secrets.build_stage("row", "column"),
            alignment.build_stage(params, layout),
            iterations,
        )

    def sizing(self) -> Sizes[CoClustering]:
        """Return the estimates of upload and memory."""
        return CoClusteringSizes()


PROTOCOL = CoClusteringProtocol()
