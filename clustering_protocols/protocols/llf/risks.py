"""Who learns what in `llf`, its risk codes, and which of them a session brings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from clustering_protocols.shared_stages.alignment import row_alignment
from clustering_protocols.shared_stages.statistics import pooling
from clustering_protocols.terms import session_risks
from clustering_protocols.terms.risks import Harm, Risk, RiskLevel
from clustering_protocols.terms.terms import Layout

from .params import LosslessFederated

FEW_ROWS: Final = 10
"""A cluster that moves with fewer rows than these is a risk."""

_OF_ROWS: Final = {
    "analyst": (
        "Numbers of rows and features, how far the centroids move in each round, and "
        "of the result what the terms publish."
    ),
    "party": (
        "The cluster of each of its rows, cluster sizes, and the centroids and exact "
        "sums of every round."
    ),
    "coordinator": "What the terms publish of the result.",
}
_OF_COLUMNS: Final = {
    "analyst": (
        "The cluster of each row (in a secret order) and how much nearer it is than "
        "the others; fuzzy: all distances of rows to centroids; of all rows together "
        "how they scatter; with the default start, up to 20,000 rows up to a motion. "
        "Rounded features as they are, up to sign and offset. It alone computes the "
        "clusters, which no party can check."
    ),
    "party": (
        "The cluster of each of its rows, cluster sizes, its own coordinates of the "
        "centroids; fuzzy: the memberships of every round."
    ),
    "coordinator": "What the analyst learns of the result.",
}
LEARNS: Final = {
    who: f"Split rows: {_OF_ROWS[who]} Split columns: {_OF_COLUMNS[who]}"
    for who in _OF_ROWS
}
RISKS: Final[Mapping[str, Risk]] = {
    "by-design-rows": Risk(
        level=RiskLevel.DESIGN,
        harm=Harm.STATISTICS,
        sentence="All parties read exact sums, sizes and centroids of every round; the "
        "analyst and the coordinator read what the terms publish.",
        remedy="Nothing; publish 'sizes' or 'nothing' tells analyst and coordinator "
        "less.",
        readers=tuple(_OF_ROWS.items()),
    ),
    "by-design-columns": Risk(
        level=RiskLevel.DESIGN,
        harm=Harm.GEOMETRY,
        sentence="The analyst sees each row's nearest cluster and by how much; a few "
        "rounds give all rows up to rotation and shift.",
        measured="With the default start, one round gives up to 20,000 rows.",
        remedy="Nothing in llf; other methods for split columns show other things.",
        detail="Columns of two values (yes or no) and rounded numbers may show there. "
        "An analyst that knows one row more than there are columns computes all rows.",
        readers=tuple(_OF_COLUMNS.items()),
    ),
    "collusion": Risk(
        level=RiskLevel.COLLUSION,
        harm=Harm.ROWS_JOINTLY,
        sentence="Every party reads the centroids of every round; one with modified "
        "software can steer them and compute rows of others.",
        measured="Of your rows it computes at most the share 'sums_limit', a quarter "
        "by default, even if all others collude.",
        remedy="A smaller 'sums_limit', which is your own choice.",
        detail="That limit does not hold for fuzzy c-means. Anyone who also knows a "
        "row, or that values are whole numbers, may find more. An analyst that "
        "colludes with a party reads the totals too, and can falsify them.",
    ),
    "small-clusters-move": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.ROWS,
        sentence="A cluster of few rows moves to their mean, which every party sees; "
        "the centroid of a single row is that row.",
        remedy="min_cluster_rows 10, the default.",
    ),
    "members-can-be-subtracted": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.STATISTICS,
        sentence="Rounds continue without some parties: anyone who reads totals with and "
        "without you can subtract them and has your sums.",
        remedy="No quorum, the default: every party is needed in every round.",
        detail="This holds once the centroids hardly move.",
    ),
    "start-shows-own-clusters": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.STATISTICS,
        sentence="The first party reads the centroids of your own clusters, each the "
        "rounded mean of at least five of your rows.",
        remedy="init 'bounds', where the dictionary gives all ranges; results then "
        "depend more on chance.",
        detail="It also reads their sizes in fives. Centroids are rounded to 1/20 of "
        "their standard deviation or more. With several starts (n_init), it reads such "
        "centroids for each start.",
    ),
    "start-shows-means-of-five-rows": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.STATISTICS,
        sentence="All parties see k means of the first party's rows, each over five "
        "neighbouring rows.",
        remedy="init 'careful', the default, or 'bounds'.",
        detail="With several starts (n_init), they see k means for each start.",
    ),
    "starts-that-race-add-sums": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.ROWS_JOINTLY,
        sentence="Every party also reads the totals of one update of each start, and "
        "can subtract them to single out rows.",
        measured="With five starts it read up to 11 more rows of 100 to 2,000 than "
        "with one.",
        remedy="One start (n_init 1), the default.",
    ),
    "runs-single-out-rows": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.ROWS,
        sentence="Several numbers of clusters are run: other parties can subtract the "
        "sums of different runs and compute rows of yours.",
        measured="Nine runs (2 to 10 clusters) exposed 23 to 40 % of others' "
        "rows, one run of at most four 0 to 5 %.",
        remedy="One number of clusters.",
        detail="In our trials, one third of the parties read rows of the others, of "
        "tables of 150 and 178 rows. Several starts (n_init) add to it, and so does "
        "every further session over the same rows.",
    ),
    "given-start-shows-rows": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.ROWS,
        sentence="The coordinator sets the start: over columns it shows the analyst "
        "rows along known directions, over rows many such sessions narrow rows down.",
        measured="Over rows 20 % of a row's cells were found within 5 % of their range "
        "from four pairs of sessions; one session says as much.",
        remedy="Another start; over rows also publish 'sizes'.",
        detail="Over columns the analyst learns how far each row lies along k - 1 "
        "known directions; with more clusters than columns, it learns every row. Over "
        "rows the coordinator sets with few updates which rows are in which cluster. "
        "Means are published in round steps of at least max(1/20, 5/n) standard "
        "deviations of a cluster of n rows.",
    ),
    "memberships-show-columns": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.ROWS,
        sentence="Every party reads fuzzy memberships of all rows in every round, and "
        "can compute the columns of the others from them.",
        measured="With two clusters more than columns, one round gave all cells of two "
        "tables; with fewer clusters, all rounds gave 79 to 95 %.",
        remedy="algorithm 'cmeans', the default.",
        detail="The analyst sees the distances of rows to centroids in every round: "
        "all rows, up to rotation and shift.",
    ),
}


def risks_of(
    params: LosslessFederated, layout: Layout, *, moments: bool, ranges: bool
) -> list[str]:
    """Return the risk codes that parameters and layout bring."""
    rows_split = layout.n_column_groups == 1
    codes = list(_of_rows(params) if rows_split else _of_columns(params))
    if len(layout.slots) == 2:
        codes.append(session_risks.TWO_PARTIES)
    codes += pooling.risks(layout, moments=moments, ranges=ranges)
    return [
        *codes,
        *row_alignment.risks(params, layout),
        session_risks.BY_DESIGN,
    ]


def _of_rows(params: LosslessFederated) -> Iterator[str]:
    yield from ("by-design-rows", "collusion")
    if not params.fuzzy and params.least_rows_moved < FEW_ROWS:
        yield "small-clusters-move"
    if params.fuzzy and params.small_cohorts == "allow":
        yield session_risks.SOLVABLE
    if params.may_be_left_out:
        yield "members-can-be-subtracted"
    if params.n_init > 1:
        yield "starts-that-race-add-sums"
    if params.start == "careful":
        yield "start-shows-own-clusters"
    if params.start == "random_party":
        yield "start-shows-means-of-five-rows"
    if params.start == "given" and params.publish == "centroids":
        yield "given-start-shows-rows"


def _of_columns(params: LosslessFederated) -> Iterator[str]:
    yield "by-design-columns"
    if params.fuzzy:
        yield "memberships-show-columns"
    if params.start == "given":
        yield "given-start-shows-rows"


def readers_of(params: LosslessFederated, *, rows_split: bool) -> Mapping[str, str]:
    """Return what analyst, parties and coordinator learn in one session."""
    published = {
        "centroids": "rounded centroids and sizes",
        "sizes": "sizes",
        "nothing": "that it is there",
    }[params.publish]
    if rows_split:
        analyst = (
            "Numbers of rows and variables, and how far centroids move in each round."
        )
        party = _OF_ROWS["party"]
    else:
        party = (
            "The cluster of each of its rows, cluster sizes, and the centroids in its own "
            "variables."
        )
        analyst = (
            "All distances of rows to centroids, in a secret order."
            if params.fuzzy
            else "The cluster of each row in a secret order, and how much nearer it is."
        )
        if params.fuzzy:
            party += " The memberships of every round."
        if params.start == "careful":
            analyst += " Before the first update, up to 20,000 rows up to a motion."
    return {
        "analyst": f"{analyst} Of the result: {published}.",
        "party": party,
        "coordinator": f"Of the result: {published}.",
    }
