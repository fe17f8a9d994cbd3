"""What a session of mixtures over split rows requires, discloses and risks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from clustering_protocols.common.errors import InvalidParameters, ProtocolFailed
from clustering_protocols.common.limits import MINIMUM_MEMBERS
from clustering_protocols.common.suitability import Kind as Data, Method, RoundBudget
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
from clustering_protocols.terms import session_risks
from clustering_protocols.terms.session_risks import Harm, Risk, RiskLevel
from clustering_protocols.terms.terms import Layout

from .params import Mixture, MixtureSession

LEARNS: Final = {
    "analyst": (
        "Numbers of rows, variables and updates, and the published part of the result."
    ),
    "first party": (
        "With init 'careful', the rounded centroids of your own clusters, each of at least "
        "five rows, and their sizes, rounded to fives."
    ),
    "party": (
        "The memberships of its own rows; in every update, the weight, mean, covariance "
        "and proportions of levels of each component, and the log likelihood, over all "
        "rows together."
    ),
    "coordinator": "The part of the result that the terms publish.",
}
RISKS: Final[Mapping[str, Risk]] = {
    "by-design": Risk(
        level=RiskLevel.DESIGN,
        harm=Harm.ROWS_JOINTLY,
        sentence="All parties read exact means and covariances of each component in every "
        "update; if all others collude, they subtract their shares and read your sums.",
        measured="In trials, 8 rows were read from 8 totals; now totals give at most "
        "1 equation for every 2 unknown numbers of others.",
        remedy="Nothing; with publish 'sizes', analyst and coordinator learn less.",
        detail="Your software counts equations over all sessions with the same rows, and "
        "stops at the limit. Anyone who already knows rows, or colludes, has fewer unknowns. If "
        "a component has the weight of one row, such as an outlier, every party reads this "
        "row: below min_cluster_rows the component stays, but its sums are sent. With "
        "init 'given' the coordinator chooses around which points rows are added up.",
        readers=tuple(LEARNS.items()),
    ),
}

_role = role_factories(__package__)
_COPIES = 3


class MixtureSizes(Sizes[Mixture]):
    """Size limits and costs of sessions with mixtures."""

    def upload_bytes(self, params: Mixture, extent: Extent) -> int:
        """Return the bytes of all updates, as if all columns were numbers."""
        return WORD * (params.max_iter + 1) * _count_words(params, extent.features)

    def memory_bytes(self, params: Mixture, extent: Extent) -> int:
        """Return the bytes that the analyst needs to add up the shares of all parties."""
        return WORD * _COPIES * extent.parties * _count_words(params, extent.features)


def _count_words(params: Mixture, width: int) -> int:
    from .model import Columns, Shape

    return Shape.of(params, Columns(width, ())).n_words


def _build_method(name: str, data: Data) -> Method:
    return Method(
        name=name,
        partitionings=("horizontal",),
        shapes=("elongated",) if data == "numeric" else ("fuzzy",),
        data=data,
        rounds=RoundBudget.MANY,
    )


class MixtureProtocol(ClusteringProtocol[Mixture]):
    """Fits mixtures to split rows by masked sums, with the result of the pooled rows."""

    title = "Gaussian mixtures and latent classes"
    summary = (
        "Finds clusters that may be longer in one direction than in another, from numbers "
        "and categories. In each update, masked sums are added up, so that nobody reads "
        "those of one party. The result is that of the pooled data."
    )
    params = Mixture
    paper = (
        "Dempster, A. P., Laird, N. M., Rubin, D. B. (1977). Maximum likelihood from "
        "incomplete data via the EM algorithm."
    )
    partitionings = ("horizontal",)
    learns: ClassVar = LEARNS
    risks: ClassVar = RISKS
    methods: ClassVar = (
        _build_method("gaussian_mixture", "numeric"),
        _build_method("latent_class", "categories"),
    )
    apart: ClassVar = "Ask for fewer clusters."
    rows_limit_updates: ClassVar = True

    def check_params(self, params: Mixture, layout: Layout) -> None:
        """Refuse split columns, fewer than three parties, and unfit initial centroids."""
        if layout.n_column_groups > 1:
            raise InvalidParameters("mixture needs split rows.")
        if len(layout.slots) < MINIMUM_MEMBERS:
            raise InvalidParameters(
                f"mixture needs {MINIMUM_MEMBERS} parties: with two, each could "
                "subtract its own rows from the sum and read the other's."
            )
        from clustering_protocols.shared_stages import starts

        starts.check_initial_centroids(params)

    def check_runs(self, runs: Sequence[Mixture], layout: Layout) -> None:
        """Refuse several runs from the same given centroids."""
        from clustering_protocols.shared_stages import starts

        super().check_runs(runs, layout)
        starts.check_given_start_has_one_run(runs)

    def check_roster(self, session: MixtureSession) -> None:
        """Raise if rows are too few, or if centroids have another number of columns."""
        from clustering_protocols.shared_stages.scaling import check_start_columns

        from . import bound

        check_start_columns(session)
        if bound.limit_updates(session) < 1:
            columns, n_rows = (
                bound.session_columns(session),
                bound.count_rows_of_others(session),
            )
            covariances = (
                ", or a covariance_type of fewer numbers"
                if len(columns.numbers)
                else ""
            )
            raise ProtocolFailed(
                f"The largest party could compute the other parties' {n_rows:,} rows from "
                f"one update. It takes {bound.remedy(columns, n_rows)}, or fewer "
                f"clusters{covariances}."
            )

    def may_label_new_rows(self, params: Mixture) -> bool:
        """Return True, because every party knows the components."""
        return True

    def figures(self, params: Mixture, layout: Layout) -> frozenset[str]:
        """Return the names of the quality figures that are computed from likelihoods."""
        return frozenset({"aic", "bic", "icl", "entropy"})

    def numbers_clusters(self, params: Mixture) -> bool:
        """Return whether the cluster numbers follow from given initial centroids."""
        return params.init == "given"

    def cautions(
        self, params: Mixture, layout: Layout, widths: Sequence[int]
    ) -> Sequence[str]:
        """Warn how many rows of others each update needs, if all columns are numbers."""
        from clustering_protocols.contract.row_history import MARGIN

        from .model import Columns, Shape

        columns = Columns(widths[0], ())
        equations = Shape.of(params, columns).n_equations
        rows = -(-MARGIN * equations // widths[0])
        sentence = (
            f"Each update needs {rows} rows outside the largest party: with fewer "
            f"than {rows * (params.max_iter + 1)} such rows, a session makes fewer updates "
            f"than max_iter, {params.max_iter}. Integers count for less; if all fields are "
            "categorical, only their possible combinations count."
        )
        return (sentence,)

    def cautions_of(
        self, params: Mixture, layout: Layout, sizes: Sequence[int]
    ) -> Sequence[str]:
        """Warn if clusters are too small to have components of their own."""
        from clustering_protocols.shared_stages import starts

        cautions = []
        small = sum(size < params.min_cluster_rows for size in sizes)
        if small:
            cautions.append(
                f"{small} of {len(sizes)} clusters have fewer than "
                f"{params.min_cluster_rows} rows (min_cluster_rows): their components may "
                "have kept their place. Choose fewer clusters."
            )
        if too_few := starts.describe_few_rows(params, layout, sizes):
            cautions.append(f"{too_few}: choose fewer clusters.")
        return cautions

    def risks_of(self, params: Mixture, layout: Layout) -> Sequence[str]:
        """Return the codes of the risks, which are the same for every session."""
        return ("by-design", session_risks.BY_DESIGN)

    def personal_data(self, layout: Layout) -> str:
        """State that only sums over several people are sent."""
        return (
            "Masked sums over several people are sent, and no single row. Labels stay "
            "with their party."
        )

    def disclosures(self, params: Mixture, layout: Layout) -> frozenset[Disclosure]:
        """Return what is disclosed to parties, and the published sizes and means."""
        disclosures = disclosures_to(Reader.GROUP, Kind.MEANS, Kind.SUMS, Kind.LABELS)
        disclosures |= disclosures_to(Reader.OUTSIDE, Kind.SIZES)
        if params.publish == "centroids":
            disclosures |= disclosures_to(Reader.OUTSIDE, Kind.MEANS)
        return disclosures

    def stages(self, params: Mixture, layout: Layout) -> Sequence[Stage]:
        """Return the stages: secrets, pooled moments, start and updates."""
        from clustering_protocols.shared_stages import secrets, starts, statistics

        from . import messages

        updates = Stage(
            name=messages.UPDATES,
            analyst=_role("roles:MixtureAnalyst"),
            party=_role("roles:MixtureParty"),
            exchanges=(
                Exchange(messages.Update, messages.Sums, 2, params.max_iter + 1),
                Exchange(messages.ReportDigest, messages.DigestReport),
            ),
            results=(messages.Agreed, messages.Summary),
            results_to="all",
            each_run=True,
        )
        return (
            secrets.build_stage("column"),
            *statistics.build_stages(layout, moments=True, ranges=False),
            *(
                [starts.build_stage(params)]
                if params.start in starts.FROM_PARTIES
                else []
            ),
            updates,
        )

    def sizing(self) -> Sizes[Mixture]:
        """Return the size limits and costs of a session."""
        return MixtureSizes()


PROTOCOL = MixtureProtocol()
