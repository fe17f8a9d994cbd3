"""Messages and stored records of lossless federated c-means and fuzzy c-means."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import numpy as np
from pydantic import Field

from clustering_protocols.common.limits import LARGEST_NUMBER
from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.records.arrays import (
    ByteArray,
    FloatArray,
    IntArray,
    Spec,
    WordArray,
)
from clustering_protocols.records.record import Record

UPDATES: Final = "updates"
"""The name of the stage that makes the updates; masks are bound to it as well."""


class Totals(Record):
    """The totals of updates that a party has not seen yet, in order.

    updates: the number of each update, and the round and attempt of its sum.
    cohorts: the slots that took part in each sum; 0 or 1 for each slot.
    totals: ring elements; k·F of sums, then k of weights, then the tag.
    """

    kind = "totals"

    updates: Annotated[IntArray, Spec("h", 3, low=1)]
    cohorts: Annotated[ByteArray, Spec("h", "slots", high=1)]
    totals: Annotated[WordArray, Spec("h", "w")]


class Update(Totals):
    """Task: add up your rows around the centroids that result from the totals."""

    kind = "update"

    number: int = Field(ge=1)
    members: list[str]


class Sums(Record):
    """Contribution to an update: the masked sums of one party.

    round, attempt: determine the masks; parties that did not take part need both
        numbers later, to read the total.
    start: always empty.
    moved: how far the centroids moved in the previous update, to two digits; only from
        the leader.
    stop: whether ``moved`` was within the tolerance; set only by the leader.
    """

    kind = "sums"
    reach = "hidden"
    meaning = "Sums of your values in each cluster, masked: nobody can read them alone."

    words: Annotated[WordArray, Spec("w")]
    round: int = Field(ge=1, le=2**31)
    attempt: int = Field(ge=1, le=2**31)
    start: Annotated[FloatArray, Spec("k", "m")]
    moved: float | None = Field(default=None, ge=0, le=LARGEST_NUMBER)
    stop: bool = False


class Close(Totals):
    """Task: label your rows by their nearest final centroids, and add them up by label."""

    kind = "close"

    members: list[str]


class ClosingShare(Record):
    """Contribution: masked sums and counts of this party's rows by label."""

    kind = "closing"
    reach = "hidden"
    meaning = (
        "Sums of your values in each final cluster, masked: nobody can read them alone."
    )

    words: Annotated[WordArray, Spec("w")]
    round: int = Field(ge=1, le=2**31)
    attempt: int = Field(ge=1, le=2**31)


class LabelTotals(Totals):
    """The totals by final label, and totals of updates that a party has not seen yet.

    closed_in: the round and attempt of the sum by label.
    closed_by: the slots that took part in that sum; 0 or 1 for each slot.
    closing: the total of that sum, as ring elements.
    """

    kind = "labelled"

    closed_in: Annotated[IntArray, Spec(2, low=1)]
    closed_by: Annotated[ByteArray, Spec("slots", high=1)]
    closing: Annotated[WordArray, Spec("closing")]


class Gather(LabelTotals):
    """Task: add up the distances of your rows from the means of the final labels."""

    kind = "gather"

    members: list[str]


class GatheredSizes(ClosingShare):
    """Contribution: masked cluster sizes, and masked sums for the quality figures."""

    kind = "gathered"
    meaning = (
        "Numbers of your rows in each cluster, masked: nobody can read them alone."
    )


class FinalTotals(LabelTotals):
    """The totals of `labelled`, and the total of the round that `gather` requests.

    gathered_in, gathered_by, gathered: like closed_in, closed_by and closing, but for
        the total of `gather`.
    """

    kind = "closed"

    gathered_in: Annotated[IntArray, Spec(2, low=1)]
    gathered_by: Annotated[ByteArray, Spec("slots", high=1)]
    gathered: Annotated[WordArray, Spec("gathered")]


class ReportDigest(FinalTotals):
    """Task: send the result's digest and, if you are the leader, what the terms publish."""

    kind = "tell"

    members: list[str]


class PublishedResult(Record):
    """The part of a result that the analyst and the coordinator may read.

    clusters: the numbers of the clusters that are large enough to be published.
    centroids: the rounded centroids of these clusters, in the units of the data; empty
        unless the terms publish them.
    sizes: the rounded sizes of these clusters.
    n_coinciding: how many of all centroids coincide with a lower-numbered centroid.
    """

    kind = "published"

    clusters: Annotated[IntArray, Spec("p", low=0)]
    centroids: Annotated[FloatArray, Spec("centroids", "m")]
    sizes: Annotated[IntArray, Spec("p", low=0)]
    n_updates: int = Field(ge=0)
    n_coinciding: int | None = Field(default=None, ge=0)


class DigestReport(PublishedResult):
    """Contribution: the digest of the result and, from the leader, the published part.

    digest: HMAC-SHA256 of the result under the group's secret, equal for all parties.
    figures: the quality figures of the labels, to six digits; only from the leader.
    """

    kind = "told"
    meaning = (
        "Rounded centroids, sizes and quality measures of the clusters of all parties."
    )

    digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    figures: Figures | None = None


class FinalSizes(Record):
    """Memory: the size of each final cluster over the rows of all parties."""

    kind = "final-sizes"

    sizes: Annotated[IntArray, Spec("k", low=0)]


class Summary(PublishedResult):
    """The summary that the coordinator receives.

    tolerances: how far the centroids moved in each update.
    """

    kind = "summary"

    tolerances: Annotated[FloatArray, Spec("t", low=0)]


class UpdateState(Record):
    """The analyst's state between rounds of split rows.

    cohort: the slots that are asked in this round; 0 or 1 for each slot.
    seen: for each slot, the number of the last update whose total it has received.
    sits_out: for each slot, for how many rounds it is left out for missed deadlines.
    misses: for each slot, the number of deadlines that it has missed in a row.
    updates, cohorts, totals: as in `totals`, from the first update whose total some
        slot still lacks.
    tolerances: how far the centroids moved in each update.
    known: always empty.
    """

    kind = "updating"

    phase: Literal["update", "close", "gather", "tell"]
    number: int
    cohort: Annotated[ByteArray, Spec("slots")]
    seen: Annotated[IntArray, Spec("slots")]
    sits_out: Annotated[IntArray, Spec("slots")]
    misses: Annotated[IntArray, Spec("slots")]
    updates: Annotated[IntArray, Spec("h", 3)]
    cohorts: Annotated[ByteArray, Spec("h", "slots")]
    totals: Annotated[WordArray, Spec("h", "w")]
    tolerances: Annotated[FloatArray, Spec("t")]
    known: Annotated[FloatArray, Spec("k", "m")]
    closed_in: Annotated[IntArray, Spec("closings")]
    closed_by: Annotated[ByteArray, Spec("closed_slots")]
    closing: Annotated[WordArray, Spec("closing")]
    gathered_in: Annotated[IntArray, Spec("gatherings")]
    gathered_by: Annotated[ByteArray, Spec("gathered_slots")]
    gathered: Annotated[WordArray, Spec("gathered")]


class Centroids(Record):
    """Memory: the centroids after an update, in scaled units, and how far they moved.

    asked: the number of the last update to which this party contributed.
    own: the weights that this party contributed to that update; empty before the first.
    members, sums, weights: the slots that took part in the update, and the totals of
        their sums and weights; empty for the initial centroids.
    """

    kind = "centroids"

    number: int
    asked: int = 0
    centroids: Annotated[FloatArray, Spec("k", "m")]
    moved: float | None
    own: Annotated[FloatArray, Spec("own")] = Field(default_factory=lambda: np.empty(0))
    members: list[str] = Field(default_factory=list)
    sums: Annotated[FloatArray, Spec("read", "m")]
    weights: Annotated[FloatArray, Spec("read")] = Field(
        default_factory=lambda: np.empty(0)
    )


class FinalRows(Record):
    """Memory: the labels and memberships of this party's rows by the final centroids."""

    kind = "final-rows"

    labels: Annotated[IntArray, Spec("n", low=0)]
    memberships: Annotated[FloatArray, Spec("n_memberships", "k", low=0, high=1)]


class FinalMeans(Record):
    """Memory: the size of each final cluster, and its mean in scaled units."""

    kind = "final-means"

    counts: Annotated[IntArray, Spec("k", low=0)]
    means: Annotated[FloatArray, Spec("k", "m")]


class MeasureGroups(Record):
    """Task: compute distances to group means from the first rows in the secret order."""

    kind = "measure-groups"


class GroupDistances(Record):
    """Contribution: masked squared distances to the group means, as ring elements."""

    kind = "group-distances"
    reach = "hidden"
    meaning = (
        "Distances of your rows to means of groups, masked: nobody can read them alone."
    )

    words: Annotated[WordArray, Spec("n", "groups")]


class StartFrom(Record):
    """Task: use the mean of each cluster's sampled rows as its initial centroid.

    labels: the clusters of the first rows in the secret order.
    """

    kind = "start-from"

    labels: Annotated[IntArray, Spec("n_labels", low=0)]


class MeasureDistances(Record):
    """Task: compute the distances of all rows to your coordinates of the centroids.

    labels: the labels after the previous update, in the secret order; empty before the
        first update and for fuzzy c-means.
    memberships: the memberships after the previous update, in the secret order; empty
        before the first update and for hard c-means.
    """

    kind = "measure"

    number: int = Field(ge=1)
    labels: Annotated[IntArray, Spec("n_labels", low=0)]
    memberships: Annotated[FloatArray, Spec("n_memberships", "k", low=0, high=1)]


class Distances(Record):
    """Contribution: masked squared distances over this party's columns."""

    kind = "distances"
    reach = "hidden"
    meaning = (
        "Distances of your rows to the centroids, masked: nobody can read them alone."
    )

    words: Annotated[WordArray, Spec("n", "k")]


class Scatter(Record):
    """Task: send the scatter of your columns within and between the final clusters.

    labels: the final labels, in the secret order.
    """

    kind = "scatter"

    labels: Annotated[IntArray, Spec("n_labels", low=0)]


class ScatterShare(Record):
    """Contribution: masked Σ ‖x - m_c‖² and Σ n_c ‖m_c - m‖² over this party's columns."""

    kind = "scattered"
    reach = "hidden"
    meaning = "Sums of squared distances, masked: nobody can read them alone."

    words: Annotated[WordArray, Spec(2)]


class ColumnsState(Record):
    """The analyst's state between rounds of split columns.

    roots: the distances (not squared) of the previous update; only for fuzzy c-means.
    rests: whether the run has converged; set after the last update.
    n_coinciding: how many centroids coincide; set after the last update.
    tolerances: how much each update changed labels or distances.
    """

    kind = "measuring"

    phase: Literal["measure", "scatter"] = "measure"
    number: int
    rests: bool = False
    n_coinciding: int = 0
    labels: Annotated[IntArray, Spec("n_labels")]
    memberships: Annotated[FloatArray, Spec("n_memberships", "k")]
    roots: Annotated[FloatArray, Spec("n_roots", "k")]
    tolerances: Annotated[FloatArray, Spec("t")]


class GroupLabels(Record):
    """Result for the parties of the row group, in the order in which rows were sent."""

    kind = "grouped"

    labels: Annotated[IntArray, Spec("n", low=0)]
    memberships: Annotated[FloatArray, Spec("n_memberships", "k", low=0, high=1)]
    cluster_sizes: Annotated[IntArray, Spec("clusters", low=0)]
    n_updates: int
    n_coinciding: int = Field(ge=0)
    figures: Figures


class ColumnsSummary(Record):
    """The summary that the coordinator receives for split columns."""

    kind = "columns-summary"

    cluster_sizes: Annotated[IntArray, Spec("clusters", low=0)]
    clusters: Annotated[IntArray, Spec("clusters", low=0)]
    n_updates: int
    n_coinciding: int | None = Field(default=None, ge=0)
    tolerances: Annotated[FloatArray, Spec("t", low=0)]


class OwnCentroids(Record):
    """Memory for split columns: this party's coordinates of the centroids."""

    kind = "own-centroids"

    number: int
    centroids: Annotated[FloatArray, Spec("k", "m")]
