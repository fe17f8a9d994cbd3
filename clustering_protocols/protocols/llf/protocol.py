"""What a session of lossless federated (fuzzy) c-means requires, discloses and risks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import ClassVar, Final

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.common.limits import FEW_ROWS
from clustering_protocols.common.suitability import (
    Method,
    Partitioning,
    RoundBudget,
    Shape,
)
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
from clustering_protocols.contract.sizing import WORD, Extent, Sizes
from clustering_protocols.shared_stages import alignment, statistics
from clustering_protocols.terms import session_risks
from clustering_protocols.terms.session_risks import Harm, Risk, RiskLevel
from clustering_protocols.terms.terms import Layout

from .params import LARGEST_TOL, LEAST_FUZZIFIER, LlfSession, LosslessFederated

_OF_ROWS: Final = {
    "analyst": (
        "Numbers of rows and features, how far the centroids move in each round, and "
        "the part of the result that the terms publish."
    ),
    "party": (
        "The cluster of each of its rows, cluster sizes, and the centroids and exact "
        "sums of every round."
    ),
    "coordinator": "The part of the result that the terms publish.",
}
_OF_COLUMNS: Final = {
    "analyst": (
        "The cluster of each row (in a secret order) and how much nearer it is than "
        "the others; fuzzy: all distances of rows to centroids; the scatter of all rows "
        "together; with the default start, up to 20,000 rows up to a motion. "
        "Rounded features as they are, up to sign and offset. It alone computes the "
        "clusters, which no party can check."
    ),
    "party": (
        "The cluster of each of its rows, cluster sizes, its own coordinates of the "
        "centroids; fuzzy: the memberships of every round."
    ),
    "coordinator": "What the analyst learns about the result.",
}
LEARNS: Final = {
    reader: f"Split rows: {_OF_ROWS[reader]} Split columns: {_OF_COLUMNS[reader]}"
    for reader in _OF_ROWS
}
RISKS: Final[Mapping[str, Risk]] = {
    "by-design-rows": Risk(
        level=RiskLevel.DESIGN,
        harm=Harm.STATISTICS,
        sentence="All parties read exact sums, sizes and centroids of every round; the "
        "analyst and the coordinator read what the terms publish.",
        remedy="Nothing; with publish 'sizes' or 'nothing', analyst and coordinator "
        "learn less.",
        detail="If a cluster has one row in any round, such as an outlier, every party "
        "reads this row exactly. If a cluster has few rows, it reads their mean. "
        "min_cluster_rows does not prevent this.",
        readers=tuple(_OF_ROWS.items()),
    ),
    "by-design-columns": Risk(
        level=RiskLevel.DESIGN,
        harm=Harm.GEOMETRY,
        sentence="The analyst sees each row's nearest cluster and how much nearer it is; "
        "a few rounds give all rows up to rotation and shift.",
        measured="With the default start, one round gives up to 20,000 rows.",
        remedy="Nothing in llf; other methods for split columns disclose other data.",
        detail="Columns with two values (yes or no) and rounded numbers may be recognisable. "
        "An analyst that knows one row more than there are columns can compute all rows.",
        readers=tuple(_OF_COLUMNS.items()),
    ),
    "collusion": Risk(
        level=RiskLevel.COLLUSION,
        harm=Harm.ROWS_JOINTLY,
        sentence="Every party reads the centroids of every round; one with modified "
        "software can steer them and compute rows of others.",
        measured="It can compute at most the fraction 'sums_limit' of your rows, a "
        "quarter by default, even if all others collude.",
        remedy="A smaller 'sums_limit', which is your own choice.",
        detail="In fuzzy c-means, a lower limit allows fewer updates, but does not bound a "
        "fraction of rows. Anyone who also knows a row, or that values are whole numbers, "
        "may compute more. An analyst that colludes with a party reads the totals too, "
        "and can falsify them.",
    ),
    "small-clusters-move": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.ROWS,
        sentence="The analyst and the coordinator may read rounded means of fewer than "
        "ten rows, and clusters of so few rows move to their mean.",
        remedy="min_cluster_rows 10, the default; parties read such means all the same.",
    ),
    "members-can-be-subtracted": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.STATISTICS,
        sentence="Rounds continue without some parties: anyone who reads totals with and "
        "without you can subtract them and obtain your sums.",
        remedy="No quorum, the default: every party is needed in every round.",
        detail="This holds once the centroids hardly move.",
    ),
    "start-shows-own-clusters": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.STATISTICS,
        sentence="The first party reads the centroids of your own clusters, each the "
        "rounded mean of at least five rows.",
        remedy="init 'bounds', if the dictionary gives all ranges; results then "
        "depend more on chance.",
        detail="It reads twice as many of your clusters as the session has, with sizes to "
        "the nearest five. Centroids are rounded to 1/20 of their standard deviation or "
        "more.",
    ),
    "start-shows-means-of-five-rows": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.STATISTICS,
        sentence="All parties see k means of the first party's rows, each over five "
        "neighbouring rows.",
        remedy="init 'careful', the default, or 'bounds'.",
    ),
    "runs-single-out-rows": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.ROWS,
        sentence="Several numbers of clusters are run: other parties can subtract the "
        "sums of different runs and compute rows of yours.",
        measured="Nine runs (2 to 10 clusters) exposed 16 to 32 % of others' "
        "rows, and one run of at most four clusters exposed 0 to 5 %.",
        remedy="One number of clusters.",
        detail="In our trials, with tables of 150 and 178 rows, one third of the parties "
        "read rows of the others. Every further session over the same rows adds to it.",
    ),
    "given-start-shows-rows": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.ROWS,
        sentence="With split rows, members read exact rows of people whom the "
        "coordinator chooses, up to 'sums_limit'; with split columns, the analyst reads parts "
        "of rows.",
        measured="With split rows, 1 session gave the exact row of a person whose day of "
        "birth was known.",
        remedy="Another start, or refuse when your software asks about few rows.",
        detail="With split columns the analyst learns how far each row lies along k - 1 "
        "known directions; with more clusters than columns, it learns every row. With split "
        "rows the start and the weights of variables set which rows are in which cluster. "
        "Your software asks before the first sums if a cluster has one to nine of your rows.",
    ),
    "memberships-show-columns": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.ROWS,
        sentence="Every party reads fuzzy memberships of all rows in every round, and "
        "can compute the columns of the others from them.",
        measured="With two more clusters than columns, one round gave all cells of two "
        "tables; with fewer clusters, all rounds together gave 79 to 95 %.",
        remedy="algorithm 'cmeans', the default.",
        detail="The analyst sees the distances of rows to centroids in every round, and "
        "so all rows up to rotation and shift.",
    ),
}


_UPDATE_COPIES = 6  # copies of all distances, from shares to results


class LlfSizes(Sizes[LosslessFederated]):
    """Size limits and costs of sessions with lossless federated clustering."""

    def upload_bytes(self, params: LosslessFederated, extent: Extent) -> int:
        """Return the bytes of a party's sums, or of its distances if columns are split."""
        return WORD * params.max_iter * _count_words(params, extent)

    def memory_bytes(self, params: LosslessFederated, extent: Extent) -> int:
        """Return the bytes that the analyst needs to add up an update."""
        return WORD * _UPDATE_COPIES * _count_words(params, extent)

    def updates_that_fit(
        self, params: Sequence[LosslessFederated], layout: Layout, n_rows: int
    ) -> int | None:
        """Return how many updates of each run the audit allows; None without an audit."""
        if params[0].fuzzy or layout.n_column_groups > 1:
            return None
        from . import rows_round

        k = sum(run.n_clusters - 1 for run in params) + 1
        return rows_round.updates_that_fit(n_rows, k)


def _count_words(params: LosslessFederated, extent: Extent) -> int:
    if extent.layout.n_column_groups == 1:
        return params.n_clusters * (extent.features + 1)
    return extent.rows * params.n_clusters


def _build_method(
    partitioning: Partitioning, name: str, shape: Shape, **params: str
) -> Method:
    return Method(
        name=name,
        partitionings=(partitioning,),
        shapes=(shape,),
        rounds=RoundBudget.MANY,
        params=params,
        agreement={partitioning: (1.0, 1.0)},
    )


_FUZZY: Final = {"algorithm": "fuzzy_cmeans"}
METHODS = (
    _build_method("horizontal", "cmeans", "spherical"),
    _build_method(
        "horizontal", "fuzzy_cmeans", "fuzzy", **_FUZZY, output="memberships"
    ),
    _build_method("vertical", "cmeans", "spherical"),
    # memberships in the result would disclose the columns of other parties
    _build_method("vertical", "fuzzy_cmeans", "fuzzy", **_FUZZY),
)

_role = role_factories(__package__)


class LosslessFederatedProtocol(ClusteringProtocol[LosslessFederated]):
    """Clusters split rows or split columns by masked sums, with the pooled result."""

    title = "Lossless federated c-means and fuzzy c-means"
    summary = (
        "In each round only masked sums (or distances) are added up; nobody sees those "
        "of one party. The result is that of the pooled data."
    )
    version = 2
    params = LosslessFederated
    paper = (
        "Corcuera Bárcena, J. L., Marcelloni, F., Renda, A., Bechini, A., "
        "Ducange, P. Federated c-means and fuzzy c-means clustering "
        "algorithms for horizontally and vertically partitioned data."
    )
    partitionings = ("horizontal", "vertical")
    learns: ClassVar = LEARNS
    risks: ClassVar = RISKS
    methods: ClassVar = METHODS

    apart: ClassVar = "Lower fuzziness, to 1.1 say, or ask for fewer clusters."

    def check_params(self, params: LosslessFederated, layout: Layout) -> None:
        """Refuse layouts that are split both ways, and parameters unfit for the split."""
        from clustering_protocols.shared_stages import starts

        if layout.n_row_groups > 1 and layout.n_column_groups > 1:
            raise InvalidParameters(
                "llf needs split rows or split columns; if both are split, use 'dc'."
            )
        alignment.check_rows_are_shared(params, layout)
        _check_parties(params, layout)
        if params.start == "random_party" and not _splits_rows(layout):
            raise InvalidParameters("init 'random_party' is for split rows.")
        if params.start == "random_rows" and _splits_rows(layout):
            raise InvalidParameters(
                "init 'random_rows' is for split columns: with split rows, rows would "
                "leave their party."
            )
        starts.check_initial_centroids(params)
        if params.output == "memberships" and not params.fuzzy:
            raise InvalidParameters("memberships need algorithm 'fuzzy_cmeans'.")

    def may_label_new_rows(self, params: LosslessFederated) -> bool:
        """Return True, because parties can assign new rows to the nearest centroids."""
        return True

    def check_opening(self, params: LosslessFederated, layout: Layout) -> None:
        """Refuse a tolerance that would end a run at once, and a fuzzifier close to 1."""
        if params.tol > LARGEST_TOL:
            raise InvalidParameters(
                f"{params.tol:g} is more than {LARGEST_TOL:g}: a session would end "
                "after one update, around a start that the coordinator may choose.",
                field="tol",
            )
        if not params.fuzzy or not _splits_rows(layout) or params.fuzzifier == "auto":
            return
        if params.fuzzifier < LEAST_FUZZIFIER:
            raise InvalidParameters(
                f"fuzzifier: {params.fuzzifier:g} is less than {LEAST_FUZZIFIER:g}: "
                "degrees would be nearly those of c-means, without its audit of sums. "
                "Choose algorithm 'cmeans'."
            )

    def check_runs(self, runs: Sequence[LosslessFederated], layout: Layout) -> None:
        """Refuse several runs if parties may miss rounds, or if nothing is published."""
        from clustering_protocols.shared_stages import starts

        super().check_runs(runs, layout)
        params = runs[-1]
        if len(runs) == 1:
            return
        if params.may_be_left_out or params.publish == "nothing":
            raise InvalidParameters(
                "Several n_clusters need every party in every round, and published "
                "figures: leave quorum at its default, and publish at least "
                "sizes."
            )
        starts.check_given_start_has_one_run(runs)

    def figures(self, params: LosslessFederated, layout: Layout) -> frozenset[str]:
        """Return the names of the quality figures, which are few for split columns."""
        if not _splits_rows(layout):
            return frozenset({"inertia", "calinski_harabasz"})
        fuzzy = {"partition_coefficient"} if params.fuzzy else set()
        return USUAL_FIGURES | {"xie_beni"} | fuzzy

    def risks_of_runs(self, params: LosslessFederated, layout: Layout) -> Sequence[str]:
        """If rows are split, return the risk that sums of different runs are subtracted."""
        return ["runs-single-out-rows"] if _splits_rows(layout) else []

    def quorum(self, params: LosslessFederated, layout: Layout) -> int:
        """Return the number of parties that each round needs."""
        return params.quorum or len(layout.slots)

    def check_roster(self, session: LlfSession) -> None:
        """Raise if rows are too few, or if centroids have another number of columns."""
        from clustering_protocols.shared_stages.scaling import check_start_columns

        from . import round_bound

        check_start_columns(session)
        round_bound.check_enough_rows(session)

    def cautions(
        self, params: LosslessFederated, layout: Layout, widths: Sequence[int]
    ) -> Sequence[str]:
        """Warn how many rows the other parties must hold because of the bound on rounds."""
        from . import round_bound

        if not _splits_rows(layout) or not round_bound.applies_to(params):
            return ()
        n_rows = round_bound.rows_needed(params, params.n_clusters, widths[0])
        sentence = (
            "The session is refused unless, for each party, the other parties hold "
            f"{n_rows} rows together, because of the totals of up to {params.max_iter} "
            "rounds: with a smaller max_iter fewer rows suffice."
        )
        return (sentence,)

    def cautions_of(
        self, params: LosslessFederated, layout: Layout, sizes: Sequence[int]
    ) -> Sequence[str]:
        """Warn if clusters were too small to move or to provide initial centroids."""
        from clustering_protocols.shared_stages import starts

        if layout.n_row_groups == 1:
            return ()
        cautions = []
        small = sum(0 < size < params.min_cluster_rows for size in sizes)
        if small and not params.fuzzy:
            cautions.append(
                f"Small clusters keep their place: {small} of {len(sizes)} have fewer "
                f"than {params.min_cluster_rows} rows "
                "(min_cluster_rows). Plain k-means would move them."
            )
        if too_few := starts.describe_few_rows(params, layout, sizes):
            cautions.append(
                f"{too_few}. The result may be far from the best pooled one: choose fewer "
                "clusters."
            )
        return cautions

    def risks_of(self, params: LosslessFederated, layout: Layout) -> Sequence[str]:
        """Return the codes of the risks that these parameters and this layout bring."""
        rows_split, start, fuzzy = _splits_rows(layout), params.start, params.fuzzy
        pooled = statistics.risk_codes(layout, **_pooled_statistics(params))
        codes = {
            "by-design-rows": rows_split,
            "by-design-columns": not rows_split,
            "collusion": rows_split,
            "small-clusters-move": (
                rows_split and not fuzzy and params.min_rows_to_move_centroid < FEW_ROWS
            ),
            session_risks.SOLVABLE: (
                rows_split and fuzzy and params.small_cohorts == "allow"
            ),
            "members-can-be-subtracted": rows_split and params.may_be_left_out,
            "start-shows-own-clusters": rows_split and start == "careful",
            "start-shows-means-of-five-rows": rows_split and start == "random_party",
            "memberships-show-columns": fuzzy and not rows_split,
            "given-start-shows-rows": start == "given",
            session_risks.TWO_PARTIES: len(layout.slots) == 2 and not pooled,
        }
        return [
            *(code for code, applies in codes.items() if applies),
            *pooled,
            *alignment.risk_codes(params, layout),
            session_risks.BY_DESIGN,
        ]

    def readers(self, params: LosslessFederated, layout: Layout) -> Mapping[str, str]:
        """Describe what each reader learns, depending on the split and on ``publish``."""
        rows_split = _splits_rows(layout)
        published = {
            "centroids": "rounded centroids and sizes"
            if rows_split
            else "rounded sizes",
            "sizes": "rounded sizes",
            "nothing": "that it exists",
        }[params.publish]
        if rows_split:
            analyst = (
                "Numbers of rows and variables, and how far centroids move in each "
                "round."
            )
            party = _OF_ROWS["party"]
        else:
            party = (
                "The cluster of each of its rows, cluster sizes, and the centroids in "
                "its own variables."
            )
            analyst = (
                "The cluster of each row in a secret order, and how much nearer it is."
            )
            if params.fuzzy:
                analyst = "All distances of rows to centroids, in a secret order."
                party += " The memberships of every round."
            if params.start == "careful":
                analyst += " Before the first update, up to 20,000 rows up to a motion."
        return {
            "analyst": f"{analyst} Of the result: {published}.",
            "party": party,
            "coordinator": f"Of the result: {published}.",
        }

    def summarise(self, params: LosslessFederated, layout: Layout) -> str:
        """Return the summary of the protocol for this split."""
        shares = "sums" if _splits_rows(layout) else "distances"
        return (
            f"In each round the parties' masked {shares} are added up, so that nobody "
            "reads those of one party. The result is that of the pooled data."
        )

    def personal_data(self, layout: Layout) -> str:
        """State whether only sums over people are sent, or values of single people."""
        if _splits_rows(layout):
            return (
                "Masked sums over several people are sent, and no single row. Labels "
                "stay with their party."
            )
        return (
            "Masked distances of each person are sent; the analyst reads their totals: data "
            "of single people, without names or ids."
        )

    def disclosures(
        self, params: LosslessFederated, layout: Layout
    ) -> frozenset[Disclosure]:
        """Return what is disclosed: sums to parties, or distances to the analyst.

        With split columns, all parties also see fuzzy memberships, which determine each
        row's distances up to a factor.
        """
        disclosures = statistics.disclosures(layout, **_pooled_statistics(params))
        disclosures |= disclosures_to(Reader.GROUP, Kind.MEANS, Kind.LABELS)
        if not _splits_rows(layout):
            for reader in (Reader.OUTSIDE, *([Reader.ALL] if params.fuzzy else [])):
                disclosures |= disclosures_to(reader, Kind.GEOMETRY, Kind.VALUES)
            return disclosures | disclosures_to(Reader.OUTSIDE, Kind.LABELS)
        disclosures |= disclosures_to(Reader.GROUP, Kind.SUMS)
        if params.fuzzy and params.small_cohorts == "allow":
            disclosures |= disclosures_to(Reader.GROUP, Kind.VALUES)
        if params.publish != "nothing":
            disclosures |= disclosures_to(Reader.OUTSIDE, Kind.SIZES)
        if params.publish == "centroids":
            disclosures |= disclosures_to(Reader.OUTSIDE, Kind.MEANS)
        return disclosures

    def stages(self, params: LosslessFederated, layout: Layout) -> Sequence[Stage]:
        """Return the stages: secrets, alignment, pooled moments, start and updates."""
        from clustering_protocols.shared_stages import secrets

        rows_split = _splits_rows(layout)
        return (
            secrets.build_stage("row", "column"),
            alignment.build_stage(params, layout, rows_travel=not rows_split),
            *statistics.build_stages(layout, **_pooled_statistics(params)),
            *(_row_stages(params) if rows_split else _column_stages(params)),
        )

    def numbers_clusters(self, params: LosslessFederated) -> bool:
        """Return whether the cluster numbers follow from given initial centroids."""
        return params.init == "given"

    def sizing(self) -> Sizes[LosslessFederated]:
        """Return the size limits and costs of a session."""
        return LlfSizes()


def _splits_rows(layout: Layout) -> bool:
    return layout.n_column_groups == 1


def _pooled_statistics(params: LosslessFederated) -> dict[str, bool]:
    return {"moments": params.scaling == "standard", "ranges": False}


def _row_stages(params: LosslessFederated) -> Iterator[Stage]:
    from clustering_protocols.shared_stages import starts

    from . import messages

    if params.start in starts.FROM_PARTIES:
        yield starts.build_stage(params)
    minimum = 0 if params.may_be_left_out else 1
    # these fields differ between parties, because one that was absent gets more totals
    own = tuple(messages.Totals.model_fields)
    exchange = partial(Exchange, own=own)
    yield Stage(
        name=messages.UPDATES,
        analyst=_role("rows_analyst:RowsAnalyst"),
        party=_role("rows_party:RowsParty"),
        exchanges=(
            exchange(messages.Update, messages.Sums, minimum, params.max_iter),
            exchange(messages.Close, messages.ClosingShare, minimum),
            exchange(messages.Gather, messages.GatheredSizes, minimum),
            exchange(messages.ReportDigest, messages.DigestReport, minimum),
        ),
        results=(messages.FinalTotals, messages.Summary),
        results_to="slot" if params.may_be_left_out else "all",
        each_run=True,
    )


def _column_stages(params: LosslessFederated) -> Iterator[Stage]:
    from clustering_protocols.shared_stages.starts.messages import StartKept

    from . import messages

    if params.start == "careful":
        yield Stage(
            name="start",
            analyst=_role("columns_analyst:ColumnStartAnalyst"),
            party=_role("columns_party:ColumnStartParty"),
            exchanges=(
                Exchange(messages.MeasureGroups, messages.GroupDistances),
                Exchange(messages.StartFrom, StartKept),
            ),
            each_run=True,
        )
    limit = params.max_iter + 1
    scatter = Exchange(messages.Scatter, messages.ScatterShare)
    yield Stage(
        name=messages.UPDATES,
        analyst=_role("columns_analyst:ColumnsAnalyst"),
        party=_role("columns_party:ColumnsParty"),
        exchanges=(
            Exchange(messages.MeasureDistances, messages.Distances, 1, limit),
            *([] if params.publish == "nothing" else [scatter]),
        ),
        results=(messages.GroupLabels, messages.ColumnsSummary),
        results_to="all",
        each_run=True,
    )


def _check_parties(params: LosslessFederated, layout: Layout) -> None:
    n_slots, least, quorum = len(layout.slots), params.least_parties, params.quorum
    if n_slots < least:
        raise InvalidParameters(
            f"A masked sum needs {least} parties, but the layout has {n_slots}: invite "
            "more, or allow_two_parties."
        )
    if quorum is not None and not least <= quorum <= n_slots:
        raise InvalidParameters(
            f"quorum must lie between {least} and {n_slots} parties."
        )
    if params.may_be_left_out and not _splits_rows(layout):
        raise InvalidParameters(
            "With split columns every party is needed in every round: leave quorum at "
            "its default."
        )


PROTOCOL = LosslessFederatedProtocol()
