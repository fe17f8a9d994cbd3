"""The risk codes of `llf`, and which of them parameters and layout bring."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from clustering_protocols.shared_stages import shared_risks
from clustering_protocols.shared_stages.alignment import row_alignment
from clustering_protocols.shared_stages.statistics import pooling
from clustering_protocols.terms.risks import Harm, Risk, RiskLevel
from clustering_protocols.terms.terms import Layout

from .params import LosslessFederated

FEW_ROWS: Final = 10
"""A cluster that moves with fewer rows than these is a risk."""

RISKS: Final[Mapping[str, Risk]] = {
    "parties-see-all-centroids": Risk(
        level=RiskLevel.METHOD,
        harm=Harm.ROWS_JOINTLY,
        sentence="Every party reads the centroids of every round; one with modified "
        "software can steer them and compute rows of others.",
        measured="Of your rows it computes at most the share 'sums_limit', a quarter "
        "by default, even if all others collude.",
        remedy="A smaller 'sums_limit', which is your own choice.",
        detail="That limit does not hold for fuzzy c-means. Anyone who also knows a "
        "row, or that values are whole numbers, may find more.",
    ),
    "small-clusters-move": Risk(
        level=RiskLevel.SESSION,
        harm=Harm.ROWS,
        sentence="A cluster of few rows moves to their mean, which every party sees; "
        "the centroid of a single row is that row.",
        remedy="min_cluster_rows 10 and small_clusters 'stay', the defaults.",
    ),
    "rows-can-be-computed": Risk(
        level=RiskLevel.SESSION,
        harm=Harm.ROWS,
        sentence="Your rows can be computed: every party reads totals of enough rounds "
        "to solve them for the rows of others.",
        remedy="small_cohorts 'refuse', the default.",
    ),
    "sums-over-rounds-single-out-rows": Risk(
        level=RiskLevel.SESSION,
        harm=Harm.ROWS,
        sentence="The analyst reads the sums over all parties in every round; together "
        "they determine single rows.",
        remedy="analyst_view 'blind', the default.",
    ),
    "own-sums-are-read": Risk(
        level=RiskLevel.SESSION,
        harm=Harm.ROWS,
        sentence="The analyst reads your own sums in every round, without any mask; "
        "together they determine single rows of yours.",
        remedy="aggregation 'masked', the default.",
    ),
    "plain-sums-are-not-checked": Risk(
        level=RiskLevel.SESSION,
        harm=Harm.ROWS,
        sentence="Sums carry no check tags: the analyst can return any totals, and so "
        "choose the centroids around which it reads your sums.",
        remedy="aggregation 'masked', the default.",
    ),
    "leaver-shows-its-sums": Risk(
        level=RiskLevel.SESSION,
        harm=Harm.STATISTICS,
        sentence="If a party is absent, the analyst may subtract two totals and read "
        "that party's sums.",
        remedy="analyst_view 'blind', the default, or no quorum.",
        detail="The analyst reads sums, and the session continues without a party that "
        "is absent. An analyst that keeps a void attempt may subtract the two totals. "
        "You have only its word that a party was absent. Receipts alone can show "
        "otherwise, and only afterwards.",
    ),
    "drawn-parties-show-their-sums": Risk(
        level=RiskLevel.SESSION,
        harm=Harm.STATISTICS,
        sentence="Parties are drawn anew in every round: once centroids hardly move, "
        "the analyst can solve the sums for each party.",
        remedy="participation 1, the default.",
    ),
    "members-can-be-subtracted": Risk(
        level=RiskLevel.SESSION,
        harm=Harm.STATISTICS,
        sentence="Rounds continue without some parties: anyone who reads totals with and "
        "without you can subtract them and has your sums.",
        remedy="No quorum, the default: every party is needed in every round.",
        detail="This holds once the centroids hardly move.",
    ),
    "two-parties-see-each-other": Risk(
        level=RiskLevel.SESSION,
        harm=Harm.STATISTICS,
        sentence="There are only two parties: each can subtract its own share from a "
        "sum and read the other's.",
        remedy="A third party.",
    ),
    "start-shows-own-clusters": Risk(
        level=RiskLevel.SESSION,
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
        level=RiskLevel.SESSION,
        harm=Harm.STATISTICS,
        sentence="All parties see k means of the first party's rows, each over five "
        "neighbouring rows.",
        remedy="init 'careful', the default, or 'bounds'.",
        detail="With several starts (n_init), they see k means for each start.",
    ),
    "starts-that-race-add-sums": Risk(
        level=RiskLevel.SESSION,
        harm=Harm.ROWS_JOINTLY,
        sentence="Every party also reads the totals of one update of each start, and "
        "can subtract them to single out rows.",
        measured="With five starts it read up to 11 more rows of 100 to 2,000 than "
        "with one.",
        remedy="One start (n_init 1), the default.",
    ),
    "runs-single-out-rows": Risk(
        level=RiskLevel.SESSION,
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
    "given-start-and-means-show-rows": Risk(
        level=RiskLevel.SESSION,
        harm=Harm.ROWS_JOINTLY,
        sentence="The coordinator sets where clusters start; the means of many such "
        "sessions narrow down single rows.",
        measured="From four pairs of sessions 20 % of a row's cells were found within "
        "5 % of their range; one session says as much.",
        remedy="Another start, or publish 'sizes'.",
        detail="With few updates, it thereby sets which rows are in which cluster. "
        "Means are published in round steps of at least max(1/20, 5/n) standard "
        "deviations of a cluster of n rows.",
    ),
    "differences-show-geometry": Risk(
        level=RiskLevel.METHOD,
        harm=Harm.GEOMETRY,
        sentence="The analyst sees each row's nearest cluster and by how much; a few "
        "rounds give all rows up to rotation and shift.",
        measured="With the default start, one round gives up to 20,000 rows.",
        remedy="A method for split columns that hides geometry: fccm, for counts.",
        detail="Columns of two values (yes or no) may show there. An analyst that "
        "knows one row more than there are columns computes all rows.",
    ),
    "memberships-are-rows-of-others": Risk(
        level=RiskLevel.METHOD,
        harm=Harm.ROWS,
        sentence="Every party and the analyst compute the columns of the others from "
        "the memberships of a round.",
        measured="On iris and wine one party alone found 100 % of the others' cells, in "
        "one round with at least two clusters more than columns.",
        remedy="algorithm 'cmeans' tells parties labels alone.",
        detail="A membership gives the distance of a row to a centroid, up to a factor of "
        "the row: all rows up to rotation and shift, and from these single columns where "
        "values are rounded. Fewer clusters take more rounds.",
    ),
    "given-start-shows-directions": Risk(
        level=RiskLevel.SESSION,
        harm=Harm.ROWS,
        sentence="The analyst knows the start, and learns how far each row lies along "
        "k - 1 known directions.",
        remedy="init 'random_rows', the default of split columns.",
        detail="With more clusters than columns, it learns every row.",
    ),
    "own-distances-are-your-columns": Risk(
        level=RiskLevel.SESSION,
        harm=Harm.GEOMETRY,
        sentence="The analyst sees your own distances without any mask; a few rounds "
        "give your columns up to rotation and shift.",
        remedy="aggregation 'masked', the default.",
    ),
    pooling.RISK_CODE: pooling.RISK,
    **shared_risks.RISKS,
    **row_alignment.RISKS,
}

FORMER_RISKS: Final = frozenset(
    {
        "sums-over-rounds-single-out-rows",
        "own-sums-are-read",
        "plain-sums-are-not-checked",
        "leaver-shows-its-sums",
        "drawn-parties-show-their-sums",
        "own-distances-are-your-columns",
    }
)
"""Codes of what no new session may have."""


def risks_of(
    params: LosslessFederated, layout: Layout, *, moments: bool, ranges: bool
) -> list[str]:
    """Return the risk codes that parameters and layout bring."""
    rows_split = layout.n_column_groups == 1
    codes = list(_of_rows(params) if rows_split else _of_columns(params))
    if params.is_masked and len(layout.slots) == 2:
        codes.append("two-parties-see-each-other")
    if pooling.shows_own(layout, moments=moments, ranges=ranges):
        codes.append(pooling.RISK_CODE)
    totals = rows_split and params.is_masked
    totals |= pooling.masks(layout, moments=moments, ranges=ranges)
    codes += shared_risks.brought(layout, totals=totals, labels=not rows_split)
    return codes + row_alignment.risks(params, layout)


def _of_rows(params: LosslessFederated) -> Iterator[str]:
    yield "parties-see-all-centroids"
    if not params.fuzzy and params.least_rows_moved < FEW_ROWS:
        yield "small-clusters-move"
    if params.fuzzy and params.small_cohorts == "allow":
        yield "rows-can-be-computed"
    if not params.is_masked:
        yield from ("own-sums-are-read", "plain-sums-are-not-checked")
    elif not params.blind:
        yield from _of_read_totals(params)
    if params.may_be_left_out:
        yield "members-can-be-subtracted"
    if params.n_init > 1:
        yield "starts-that-race-add-sums"
    if params.start == "careful":
        yield "start-shows-own-clusters"
    if params.start == "random_party":
        yield "start-shows-means-of-five-rows"
    given = params.start == "given"
    if given and params.publish == "centroids":
        yield "given-start-and-means-show-rows"


def _of_read_totals(params: LosslessFederated) -> Iterator[str]:
    yield "sums-over-rounds-single-out-rows"
    if params.quorum is not None:
        yield "leaver-shows-its-sums"
    if params.participation < 1:
        yield "drawn-parties-show-their-sums"


def _of_columns(params: LosslessFederated) -> Iterator[str]:
    if not params.is_masked:
        yield "own-distances-are-your-columns"
    else:
        fuzzy = "memberships-are-rows-of-others"
        yield fuzzy if params.fuzzy else "differences-show-geometry"
    if params.start == "given":
        yield "given-start-shows-directions"
