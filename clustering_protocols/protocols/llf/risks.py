"""The risk codes of `llf`, and which of them parameters and layout bring."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from clustering_protocols.preparation import shared_risks
from clustering_protocols.preparation.alignment import aligning
from clustering_protocols.preparation.statistics import pooling
from clustering_protocols.terms import Layout

from .params import FROM_PARTIES, LosslessFederated

FEW_ROWS: Final = 10
"""A cluster that moves with fewer rows than these is a risk."""

RISKS: Final[Mapping[str, str]] = {
    "parties-see-all-centroids": (
        "Every party sees the centroids and totals of every round. One whose software "
        "was changed can move the centroids slowly where it likes, and compute rows of "
        "others: of yours no more than the share 'sums_limit' of your own choice (a "
        "quarter), even if all others work together; of fuzzy c-means that share does "
        "not hold. Who knows a row beside, or that values are whole numbers, may find more."
    ),
    "small-clusters-move": (
        "A cluster of few rows moves to their mean, which every party sees: the centroid "
        "of a single row is the row."
    ),
    "rows-can-be-computed": (
        "Your rows can be computed: every party reads the totals of all rounds, and "
        "there may be enough rounds to solve them for the rows of all others."
    ),
    "sums-over-rounds-single-out-rows": (
        "The analyst reads the sums over all parties in every round; together they "
        "determine single rows."
    ),
    "own-sums-are-read": (
        "The analyst reads your own sums in every round, without any mask; together "
        "they determine single rows of yours."
    ),
    "plain-sums-are-not-checked": (
        "Sums carry no tags: the analyst can hand back any totals it likes, and so "
        "choose the centroids around which it reads your next sums."
    ),
    "leaver-shows-its-sums": (
        "The analyst reads sums, and the session goes on without a party that is "
        "away: an analyst that keeps a void attempt may subtract the two totals. That a "
        "party was away is its word; only receipts show otherwise, and afterwards."
    ),
    "drawn-parties-show-their-sums": (
        "The analyst reads sums over parties that are drawn anew in every round: once "
        "the centroids hardly move, it can solve several such sums for those of each "
        "party."
    ),
    "members-can-be-subtracted": (
        "Rounds go on without some of the parties: who reads totals with and without "
        "you, once the centroids hardly move, can subtract them and has your sums."
    ),
    "two-parties-see-each-other": (
        "There are two parties: each can take its own share off a sum and read the "
        "other's."
    ),
    "start-shows-means-of-five-rows": (
        "The leader (first party) sees k means of five neighbouring rows of yours (start "
        "'careful'), or all parties see those of the leader ('random_party'); k for each "
        "start, where several race."
    ),
    "starts-that-race-add-sums": (
        "Several starts race: every party also reads the totals of one update of each, "
        "and can subtract them from each other to single out rows. In our trials, with "
        "five starts, it read up to 11 more rows of 100 to 2,000 than of one run."
    ),
    "runs-single-out-rows": (
        "Runs with several numbers of clusters: other parties subtract the sums of "
        "different runs and compute rows of yours. In our trials nine runs (2 to 10 "
        "clusters) let one third of the parties read 30 to 38 % of the others' rows of "
        "tables of 150 and 178 rows, one run of at most four clusters 0 to 4 %. Starts "
        "that race add to it, and so does every further session over the same rows."
    ),
    "given-start-and-means-show-rows": (
        "The coordinator says where clusters start, and with few updates which rows are "
        "in which cluster: the means of many such sessions narrow down single rows. They "
        "are told to max(1/20, 5/n) spreads of a cluster of n rows. Over four pairs of "
        "sessions 19 % of a row's cells were then found within 5 % of their range, and "
        "20 % by guessing the mean."
    ),
    "differences-show-geometry": (
        "The analyst sees which cluster is nearest to each row, and by how much: over "
        "a few rounds that gives all rows together up to rotation and shift, where "
        "columns of two values (yes or no) may show; with as many known rows as there "
        "are columns, and one more, all of them."
    ),
    "distances-are-data-up-to-motion": (
        "The analyst sees the distances of rows to centroids in every round: they "
        "give all rows together up to rotation and shift, where columns of two values "
        "(yes or no) may show."
    ),
    "given-start-shows-directions": (
        "The analyst knows where the centroids start: it learns how far each row lies "
        "along k - 1 known directions, and with more clusters than columns every row."
    ),
    "own-distances-are-your-columns": (
        "The analyst sees your own distances without any mask: over a few rounds "
        "they are your columns up to rotation and shift."
    ),
    pooling.RISK_CODE: pooling.RISK_SENTENCE,
    **shared_risks.RISKS,
    **aligning.RISKS,
}


def risks_of(
    params: LosslessFederated, layout: Layout, *, moments: bool, ranges: bool
) -> list[str]:
    """Return the risk codes that parameters and layout bring."""
    rows_split = layout.n_column_groups == 1
    codes = list(_of_rows(params) if rows_split else _of_columns(params))
    if params.masked and len(layout.slots) == 2:
        codes.append("two-parties-see-each-other")
    if pooling.shows_own(layout, moments=moments, ranges=ranges):
        codes.append(pooling.RISK_CODE)
    totals = rows_split and params.masked
    totals |= pooling.masks(layout, moments=moments, ranges=ranges)
    codes += shared_risks.brought(layout, totals=totals, labels=not rows_split)
    return codes + aligning.risks(params, layout)


def _of_rows(params: LosslessFederated) -> Iterator[str]:
    yield "parties-see-all-centroids"
    if not params.fuzzy and params.least_rows_moved < FEW_ROWS:
        yield "small-clusters-move"
    if params.fuzzy and params.small_cohorts == "allow":
        yield "rows-can-be-computed"
    if not params.masked:
        yield from ("own-sums-are-read", "plain-sums-are-not-checked")
    elif not params.blind:
        yield from _of_read_totals(params)
    if params.may_be_left_out:
        yield "members-can-be-subtracted"
    if params.n_init > 1:
        yield "starts-that-race-add-sums"
    if params.start(rows_split=True) in FROM_PARTIES:
        yield "start-shows-means-of-five-rows"
    given = params.start(rows_split=True) == "given"
    if given and params.publish == "centroids":
        yield "given-start-and-means-show-rows"


def _of_read_totals(params: LosslessFederated) -> Iterator[str]:
    yield "sums-over-rounds-single-out-rows"
    if params.quorum is not None:
        yield "leaver-shows-its-sums"
    if params.participation < 1:
        yield "drawn-parties-show-their-sums"


def _of_columns(params: LosslessFederated) -> Iterator[str]:
    if not params.masked:
        yield "own-distances-are-your-columns"
    else:
        fuzzy = "distances-are-data-up-to-motion"
        yield fuzzy if params.fuzzy else "differences-show-geometry"
    if params.start(rows_split=False) == "given":
        yield "given-start-shows-directions"
