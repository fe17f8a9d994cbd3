"""Lossless federated c-means and fuzzy c-means (Corcuera Bárcena et al.)."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from clustering_protocols.common.errors import InvalidParameters
from clustering_protocols.contract import (
    USUAL_FIGURES,
    ClusteringProtocol,
    Disclosure,
    Kind,
    PooledReference,
    Reader,
    Stage,
    to,
)
from clustering_protocols.contract.sizing import Sizes
from clustering_protocols.shared_stages.alignment import row_alignment
from clustering_protocols.shared_stages.statistics import pooling
from clustering_protocols.terms.terms import Layout

from .methods import METHODS
from .params import (
    LARGEST_TOL,
    LEAST_FUZZIFIER,
    LEAST_OWN_ROWS,
    LlfSession,
    LosslessFederated,
)
from .risks import LEARNS, RISKS, readers_of, risks_of

__all__ = ["PROTOCOL", "LosslessFederated"]


class LosslessFederatedProtocol(ClusteringProtocol[LosslessFederated]):
    """Rows split or columns split; sums per round; equal to the pooled result."""

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

    def check(self, params: LosslessFederated, layout: Layout) -> None:
        """Refuse layouts split both ways, and parameters that do not fit the split."""
        if layout.n_row_groups > 1 and layout.n_column_groups > 1:
            raise InvalidParameters(
                "llf takes split rows or split columns; for both at once there is 'dc'."
            )
        row_alignment.check(params, layout)
        _check_parties(params, layout)
        _check_start(params, layout)
        _check_race(params, layout)
        if params.output == "memberships" and not params.fuzzy:
            raise InvalidParameters("memberships need algorithm 'fuzzy_cmeans'.")

    def may_label_new_rows(self, params: LosslessFederated) -> bool:
        """Return True: over split rows parties have the centroids."""
        return True

    def check_opening(self, params: LosslessFederated, layout: Layout) -> None:
        """Refuse what says nothing: a tolerance that ends at once, degrees of 0 and 1."""
        if params.tol > LARGEST_TOL:
            raise InvalidParameters(
                f"{params.tol:g} is more than {LARGEST_TOL:g}: a session would end "
                "after one update of a start that may be chosen.",
                field="tol",
            )
        rows_split = layout.n_column_groups == 1
        given = params.fuzzifier
        if given == "auto":
            return
        if params.fuzzy and rows_split and given < LEAST_FUZZIFIER:
            raise InvalidParameters(
                f"fuzzifier: {given:g} is less than {LEAST_FUZZIFIER:g}: "
                "degrees would be those of c-means, without its audit of sums. Take "
                "algorithm 'cmeans'."
            )

    def check_runs(self, runs: Sequence[LosslessFederated], layout: Layout) -> None:
        """Refuse several runs where some parties may be left out of one, or tell nobody."""
        super().check_runs(runs, layout)
        params = runs[-1]
        if len(runs) == 1:
            return
        if params.may_be_left_out or params.publish == "nothing":
            raise InvalidParameters(
                "Several n_clusters need every party in every round, and figures that "
                "are told: leave quorum and participation at their defaults, and "
                "publish at least sizes."
            )
        if params.initial_centroids is not None:
            raise InvalidParameters(
                "initial_centroids are of one number of clusters; several n_clusters "
                "need another start."
            )

    def figures(self, params: LosslessFederated, layout: Layout) -> frozenset[str]:
        """Return the usual ones; of split columns those that need no row as a whole."""
        if not _rows_split(layout):
            return frozenset({"inertia", "calinski_harabasz"})
        fuzzy = {"partition_coefficient"} if params.fuzzy else set()
        return USUAL_FIGURES | {"xie_beni"} | fuzzy

    def risks_of_runs(self, params: LosslessFederated, layout: Layout) -> Sequence[str]:
        """Return what other parties read off the differences between runs."""
        return ["runs-single-out-rows"] if _rows_split(layout) else []

    def quorum(self, params: LosslessFederated, layout: Layout) -> int:
        """Return the quorum of the terms."""
        return params.quorum or len(layout.slots)

    def check_roster(self, session: LlfSession) -> None:
        """Refuse a given start that is not as wide as the data, and too small cohorts."""
        from . import round_bound
        from .features import check_widths

        check_widths(session)
        round_bound.check(session)

    def cautions(
        self, params: LosslessFederated, layout: Layout, widths: Sequence[int]
    ) -> Sequence[str]:
        """Say how many rows of others it takes, where totals could be solved for them."""
        from . import round_bound

        if not _rows_split(layout) or not round_bound.applies(params):
            return ()
        needed = round_bound.rows_needed(params, params.n_clusters, widths[0])
        sentence = (
            f"The session is refused unless each party has {needed} rows of others, for "
            f"totals of up to {params.max_iter} rounds: a smaller max_iter takes fewer."
        )
        return (sentence,)

    def cautions_of(
        self, params: LosslessFederated, layout: Layout, sizes: Sequence[int]
    ) -> Sequence[str]:
        """Say which clusters were too small to move, and too small to start from."""
        if layout.n_row_groups == 1:
            return ()
        found = []
        small = sum(0 < size < params.min_cluster_rows for size in sizes)
        if small and not params.fuzzy:
            found.append(
                f"Small clusters keep their place: {small} of {len(sizes)} have fewer "
                f"than {params.min_cluster_rows} rows "
                "(min_cluster_rows). Plain k-means would move them."
            )
        each = sum(sizes) / (len(layout.slots) * max(len(sizes), 1))
        if params.start == "careful" and 0 < each < LEAST_OWN_ROWS:
            found.append(
                f"A party has {each:.1f} rows of each cluster in the mean, and starts "
                "from clusters of five. The result may be far from the best pooled one: "
                "take fewer clusters."
            )
        return found

    def risks_of(self, params: LosslessFederated, layout: Layout) -> Sequence[str]:
        """Return the risk codes that parameters and layout bring."""
        return risks_of(params, layout, **_pooled_statistics(params))

    def readers(self, params: LosslessFederated, layout: Layout) -> Mapping[str, str]:
        """Return who learns what of this split, and of what is published."""
        return readers_of(params, rows_split=_rows_split(layout))

    def summarise(self, params: LosslessFederated, layout: Layout) -> str:
        """Return what happens with this split."""
        if _rows_split(layout):
            return (
                "In each round the parties' masked sums are added up, so that nobody "
                "reads those of one party. The result is that of the pooled data."
            )
        return (
            "In each round the parties' masked distances are added up, so that nobody "
            "reads those of one party. The result is that of the pooled data."
        )

    def personal_data(self, layout: Layout) -> str:
        """Return whether sums over people leave, or numbers of each of them."""
        if _rows_split(layout):
            return (
                "Masked sums over several people are sent, and no single row. Labels "
                "stay with their party."
            )
        return (
            "Masked distances of each person are sent; the analyst reads their totals: data "
            "of single people, without names or ids."
        )

    def shows(self, params: LosslessFederated, layout: Layout) -> frozenset[Disclosure]:
        """Return sums of rows to parties; or distances of columns to the analyst.

        Memberships over columns are the distances too, up to a factor of each row.
        """
        shown = pooling.shows(layout, **_pooled_statistics(params))
        shown |= to(Reader.GROUP, Kind.MEANS, Kind.LABELS)
        if not _rows_split(layout):
            readers = (Reader.OUTSIDE, *([Reader.ALL] if params.fuzzy else []))
            for reader in readers:
                shown |= to(reader, Kind.GEOMETRY, Kind.VALUES)
            return shown | to(Reader.OUTSIDE, Kind.LABELS)
        shown |= to(Reader.GROUP, Kind.SUMS)
        if params.fuzzy and params.small_cohorts == "allow":
            shown |= to(Reader.GROUP, Kind.VALUES)
        if params.publish == "centroids":
            shown |= to(Reader.OUTSIDE, Kind.MEANS)
        return shown

    def stages(self, params: LosslessFederated, layout: Layout) -> Sequence[Stage]:
        """Return secrets, alignment, pooled moments if needed, a start, the updates."""
        from . import stage_chain

        rows_split = _rows_split(layout)

        return (
            *stage_chain.setup(params, layout),
            *pooling.stages(layout, **_pooled_statistics(params)),
            *stage_chain.runs(params, rows_split=rows_split),
        )

    def numbers_clusters(self, params: LosslessFederated) -> bool:
        """Return whether the terms give the starts: clusters keep their numbers then."""
        return params.init == "given"

    def sizes(self) -> Sizes[LosslessFederated]:
        """Return bytes, memory and work."""
        from .needs import LlfSizes

        return LlfSizes()

    def reference(self) -> PooledReference[LosslessFederated]:
        """Return examples, and the pooled run."""
        from . import reference

        return reference


def _rows_split(layout: Layout) -> bool:
    return layout.n_column_groups == 1


def _pooled_statistics(params: LosslessFederated) -> dict[str, bool]:
    return {"moments": params.scaling == "standard", "ranges": False}


def _check_parties(params: LosslessFederated, layout: Layout) -> None:
    n_slots = len(layout.slots)
    if n_slots < params.least_parties:
        raise InvalidParameters(
            f"A masked sum needs {params.least_parties} parties, the layout has "
            f"{n_slots}: invite more, or allow_two_parties."
        )
    quorum = params.quorum
    if quorum is not None and not params.least_parties <= quorum <= n_slots:
        raise InvalidParameters(
            f"quorum must lie between {params.least_parties} and {n_slots} parties."
        )
    if not _rows_split(layout) and (quorum is not None or params.participation < 1):
        raise InvalidParameters(
            "With split columns every party is needed in every round: leave quorum and "
            "participation at their defaults."
        )


def _check_start(params: LosslessFederated, layout: Layout) -> None:
    start = params.start
    if start == "random_party" and not _rows_split(layout):
        raise InvalidParameters("init 'random_party' is for split rows.")
    if start == "random_rows" and _rows_split(layout):
        raise InvalidParameters(
            "init 'random_rows' is for split columns: with split rows a row would leave."
        )
    given = params.initial_centroids
    if (start == "given") != (given is not None):
        raise InvalidParameters("init 'given' and initial_centroids go together.")
    if given is not None and len(given) != params.n_clusters:
        raise InvalidParameters(
            f"initial_centroids has {len(given)} rows for {params.n_clusters} clusters."
        )


def _check_race(params: LosslessFederated, layout: Layout) -> None:
    if params.n_init == 1:
        return
    if not _rows_split(layout):
        raise InvalidParameters(
            "n_init is for split rows: over split columns init 'careful' is the best of "
            "ten starts. Leave n_init at 1."
        )
    if params.start == "given":
        raise InvalidParameters("n_init is for starts that are drawn: leave it at 1.")
    if params.may_be_left_out:
        raise InvalidParameters(
            "Starts race on all rows of all parties: with n_init leave quorum and "
            "participation at their defaults."
        )


PROTOCOL = LosslessFederatedProtocol()
