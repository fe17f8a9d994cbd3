"""The risk codes of `llf`, and which of them parameters and layout bring."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from clustering_protocols.shared_stages import shared_risks
from clustering_protocols.shared_stages.alignment import row_alignment
from clustering_protocols.shared_stages.statistics import pooling
from clustering_protocols.terms.terms import Layout

from .params import LosslessFederated

FEW_ROWS: Final = 10
"""A cluster that moves with fewer rows than these is a risk."""

RISKS: Final[Mapping[str, str]] = {
    "parties-see-all-centroids": (
        "Every party sees the centroids and totals of every round. A party with "
        "modified software can move the centroids slowly where it likes, and compute "
        "rows of others. Of your rows it computes no more than the share 'sums_limit' "
        "that you choose (a quarter by default), even if all others collude. That "
        "limit does not hold for fuzzy c-means. Anyone who also knows a row, or that "
        "values are whole numbers, may find more."
    ),
    "small-clusters-move": (
        "A cluster of few rows moves to their mean, which every party sees. The "
        "centroid of a single row is that row."
    ),
    "rows-can-be-computed": (
        "Your rows can be computed. Every party reads the totals of all rounds, and "
        "there may be enough rounds to solve them for the rows of all others."
    ),
    "sums-over-rounds-single-out-rows": (
        "The analyst reads the sums over all parties in every round. Together these "
        "sums determine single rows."
    ),
    "own-sums-are-read": (
        "The analyst reads your own sums in every round, without any mask. Together "
        "these sums determine single rows of yours."
    ),
    "plain-sums-are-not-checked": (
        "Sums carry no check tags, so the analyst can return any totals it likes. It "
        "thereby chooses the centroids around which it reads your next sums."
    ),
    "leaver-shows-its-sums": (
        "The analyst reads sums, and the session goes on without a party that is "
        "absent. An analyst that keeps a void attempt may subtract the two totals. "
        "You have only its word that a party was absent. Receipts alone can show "
        "otherwise, and only afterwards."
    ),
    "drawn-parties-show-their-sums": (
        "The analyst reads sums over parties that are drawn anew in every round. Once "
        "the centroids hardly move, it can solve several such sums for those of each "
        "party."
    ),
    "members-can-be-subtracted": (
        "Rounds go on without some of the parties. Once the centroids hardly move, "
        "anyone who reads totals with and without you can subtract them. The "
        "difference is your sums."
    ),
    "two-parties-see-each-other": (
        "There are only two parties. Each can subtract its own share from a sum and "
        "read the other's."
    ),
    "start-shows-own-clusters": (
        "The leader (first party) reads the centroids of your own clusters, and their "
        "sizes in fives. Each centroid is the mean of at least five of your rows, "
        "rounded to 1/20 of their standard deviation or more. With several starts "
        "(n_init), it reads such centroids for each start."
    ),
    "start-shows-means-of-five-rows": (
        "All parties see k means of the leader's rows, each over five neighbouring "
        "rows. With several starts (n_init), they see k means for each start."
    ),
    "starts-that-race-add-sums": (
        "There are several starts (n_init). Every party also reads the totals of one "
        "update of each start. It can subtract these totals from each other to single "
        "out rows. In our trials with five starts, it read up to 11 more rows of 100 "
        "to 2,000 than with a single run."
    ),
    "runs-single-out-rows": (
        "Because several numbers of clusters are run, other parties can subtract the "
        "sums of different runs and compute rows of yours. In our trials, one third "
        "of the parties read rows of the others, of tables of 150 and 178 rows. Nine "
        "runs (2 to 10 clusters) exposed 23 to 29 % of those rows. One run of at most "
        "four clusters exposed 0 to 3 %. Several starts (n_init) add to it, and so "
        "does every further session over the same rows."
    ),
    "given-start-and-means-show-rows": (
        "The coordinator sets where clusters start. With few updates, it thereby sets "
        "which rows are in which cluster. The means of many such sessions narrow down "
        "single rows. Means are published in round steps of at least max(1/20, 5/n) "
        "standard deviations of a cluster of n rows. From four pairs of sessions, a "
        "row's cells were then found within 5 % of their range for 20 %. A single "
        "session says as much."
    ),
    "differences-show-geometry": (
        "The analyst sees which cluster is nearest to each row, and by how much. Over "
        "a few rounds that gives all rows together, up to rotation and shift. Columns "
        "of two values (yes or no) may show there. An analyst that knows one row more "
        "than there are columns computes all rows."
    ),
    "distances-are-data-up-to-motion": (
        "The analyst sees the distances of rows to centroids in every round. They "
        "give all rows together, up to rotation and shift. Columns of two values (yes "
        "or no) may show there."
    ),
    "given-start-shows-directions": (
        "The analyst knows where the centroids start. It learns how far each row lies "
        "along k - 1 known directions. With more clusters than columns, it learns "
        "every row."
    ),
    "own-distances-are-your-columns": (
        "The analyst sees your own distances without any mask. Over a few rounds they "
        "give your columns, up to rotation and shift."
    ),
    pooling.RISK_CODE: pooling.RISK_SENTENCE,
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
    if params.start(rows_split=True) == "careful":
        yield "start-shows-own-clusters"
    if params.start(rows_split=True) == "random_party":
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
    if not params.is_masked:
        yield "own-distances-are-your-columns"
    else:
        fuzzy = "distances-are-data-up-to-motion"
        yield fuzzy if params.fuzzy else "differences-show-geometry"
    if params.start(rows_split=False) == "given":
        yield "given-start-shows-directions"
