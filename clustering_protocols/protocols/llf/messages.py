"""Records of lossless federated c-means and fuzzy c-means: of starts, rows and columns."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import numpy as np
from pydantic import Field

from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.records.arrays import (
    ByteArray,
    FloatArray,
    IntArray,
    Spec,
    WordArray,
)
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.statistics.magnitudes import LARGEST

UPDATES: Final = "updates"
"""The name of the stage of updates, which is also part of what masks are bound to."""


class Totals(Record):
    """The totals of updates that a party has not seen yet, in order.

    updates: number of the update, round and attempt in which its sum was made.
    cohorts: who took part, 0 or 1 for each slot.
    totals: ring elements, k·F of sums, then k of weights.
    """

    kind = "totals"

    updates: Annotated[IntArray, Spec("h", 3, low=1)]
    cohorts: Annotated[ByteArray, Spec("h", "slots", high=1)]
    totals: Annotated[WordArray, Spec("h", "w")]


class Update(Totals):
    """Task: add up your rows around the centroids that follow from the totals."""

    kind = "update"

    number: int = Field(ge=1)
    members: list[str]


class Sums(Record):
    """Contribution to an update: the masked sums of one party.

    round, attempt: select the masks; parties that did not take part need them later.
    start: always empty.
    moved: from the leader; how far the centroids moved in the previous update, to two
        digits.
    stop: from the leader; whether ``moved`` was within the tolerance.
    """

    kind = "sums"
    reach = "hidden"
    meaning = "Sums of your values in each cluster, masked: nobody can read them alone."

    words: Annotated[WordArray, Spec("w")]
    round: int = Field(ge=1, le=2**31)
    attempt: int = Field(ge=1, le=2**31)
    start: Annotated[FloatArray, Spec("k", "m")]
    moved: float | None = Field(default=None, ge=0, le=LARGEST)
    stop: bool = False


class Close(Totals):
    """Task: label your rows by the final centroids, and add them up by label."""

    kind = "close"

    members: list[str]


class ClosingShare(Record):
    """Contribution: sums and counts of rows by label, as ring elements."""

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

    closed_in: round and attempt of the sum by label.
    closed_by: who took part in that sum, 0 or 1 for each slot.
    closing: the total of the sum by label, as ring elements.
    """

    kind = "labelled"

    closed_in: Annotated[IntArray, Spec(2, low=1)]
    closed_by: Annotated[ByteArray, Spec("slots", high=1)]
    closing: Annotated[WordArray, Spec("closing")]


class Gather(LabelTotals):
    """Task: add up the scatter of your rows around the means of the final labels."""

    kind = "gather"

    members: list[str]


class GatheredSizes(ClosingShare):
    """Contribution: sizes, and sums for the figures of the final labels."""

    kind = "gathered"
    reach = "hidden"
    meaning = (
        "Numbers of your rows in each cluster, masked: nobody can read them alone."
    )


class FinalTotals(LabelTotals):
    """The totals of `labelled`, and those of the round `gather`."""

    kind = "closed"

    gathered_in: Annotated[IntArray, Spec(2, low=1)]
    gathered_by: Annotated[ByteArray, Spec("slots", high=1)]
    gathered: Annotated[WordArray, Spec("gathered")]


class ReportDigest(FinalTotals):
    """Task: send the digest of the result; the leader also sends the published part."""

    kind = "tell"

    members: list[str]


class PublishedResult(Record):
    """The part of a result that analyst and coordinator may read.

    clusters: numbers of the clusters that are large enough to publish.
    centroids: their centroids, in the units of the data; empty unless the terms publish
        them.
    sizes: their sizes.
    n_coinciding: how many of all centroids coincide with a lower-numbered one.
    """

    kind = "published"

    clusters: Annotated[IntArray, Spec("p", low=0)]
    centroids: Annotated[FloatArray, Spec("centroids", "m")]
    sizes: Annotated[IntArray, Spec("p", low=0)]
    n_updates: int = Field(ge=0)
    n_coinciding: int | None = Field(default=None, ge=0)


class DigestReport(PublishedResult):
    """Contribution: the digest of the result, and the leader's published part.

    digest: HMAC-SHA256 under the group's secret; equal at all parties.
    figures: of the labels, to six digits.
    """

    kind = "told"
    meaning = (
        "Rounded centroids, sizes and quality measures of the clusters of all parties."
    )

    digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    figures: Figures | None = None


class FinalSizes(Record):
    """Memory: rows of all parties in each cluster, once all agree on the result."""

    kind = "final-sizes"

    sizes: Annotated[IntArray, Spec("k", low=0)]


class Summary(PublishedResult):
    """The coordinator's summary.

    tolerances: how far the centroids moved in each update.
    """

    kind = "summary"

    tolerances: Annotated[FloatArray, Spec("t", low=0)]


class UpdateState(Record):
    """The analyst's state between rounds of split rows.

    cohort: who is asked, 0 or 1 for each slot.
    seen: for each slot, the last update whose total it has received.
    sits_out, misses: for how many rounds a slot that missed deadlines is left out, and
        how many it missed in a row.
    updates, cohorts, totals: as in `totals`, from the first update a slot still lacks.
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
    """Memory: V after an update, in scaled units, and how far it moved.

    asked: the number of the last update to which this party added its share.
    own: the weights of that share; empty before the first share.
    members, sums, weights: the total from which V was computed; empty for V(0).
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
    """Memory: clusters of this party's rows by the final centroids."""

    kind = "final-rows"

    labels: Annotated[IntArray, Spec("n", low=0)]
    memberships: Annotated[FloatArray, Spec("n_memberships", "k", low=0, high=1)]


class FinalMeans(Record):
    """Memory: number of rows of each final cluster, and their mean in scaled units."""

    kind = "final-means"

    counts: Annotated[IntArray, Spec("k", low=0)]
    means: Annotated[FloatArray, Spec("k", "m")]


class MeasureGroups(Record):
    """Task: compute the distances of the first rows in the secret order to group means."""

    kind = "measure-groups"


class GroupDistances(Record):
    """Contribution: squared distances to the means of the groups, as ring elements."""

    kind = "group-distances"
    reach = "hidden"
    meaning = (
        "Distances of your rows to means of groups, masked: nobody can read them alone."
    )

    words: Annotated[WordArray, Spec("n", "groups")]


class StartFrom(Record):
    """Task: start each cluster from the mean of its rows.

    labels: clusters of the first rows in the secret order.
    """

    kind = "start-from"

    labels: Annotated[IntArray, Spec("n_labels", low=0)]


class MeasureDistances(Record):
    """Task: compute the distances of all rows to your coordinates of the centroids.

    labels: result of the previous update, in the secret order; empty before the first
        update and for fuzzy c-means.
    memberships: result of the previous update, in the secret order; empty before the
        first update and for hard c-means.
    """

    kind = "measure"

    number: int = Field(ge=1)
    labels: Annotated[IntArray, Spec("n_labels", low=0)]
    memberships: Annotated[FloatArray, Spec("n_memberships", "k", low=0, high=1)]


class Distances(Record):
    """Contribution: squared distances over own columns, as ring elements."""

    kind = "distances"
    reach = "hidden"
    meaning = (
        "Distances of your rows to the centroids, masked: nobody can read them alone."
    )

    words: Annotated[WordArray, Spec("n", "k")]


class Scatter(Record):
    """Task: send the scatter of your columns within and between the final clusters.

    labels: from the last announced update; a party refuses any others.
    """

    kind = "scatter"

    labels: Annotated[IntArray, Spec("n_labels", low=0)]


class ScatterShare(Record):
    """Contribution: Σ ‖x - m_c‖² and Σ n_c ‖m_c - m‖² over own columns, encoded."""

    kind = "scattered"
    reach = "hidden"
    meaning = "Sums of squared distances, masked: nobody can read them alone."

    words: Annotated[WordArray, Spec(2)]


class ColumnsState(Record):
    """The analyst's state between rounds of split columns.

    roots: square roots of the squared distances of the previous update (fuzzy c-means).
    rests, n_coinciding: whether the run has converged, and how many centroids coincide;
        set after the last update.
    tolerances: how much each update changed.
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
    """Result for the row group, in the order in which rows travelled."""

    kind = "grouped"

    labels: Annotated[IntArray, Spec("n", low=0)]
    memberships: Annotated[FloatArray, Spec("n_memberships", "k", low=0, high=1)]
    cluster_sizes: Annotated[IntArray, Spec("clusters", low=0)]
    n_updates: int
    n_coinciding: int = Field(ge=0)
    figures: Figures


class ColumnsSummary(Record):
    """The coordinator's summary of split columns."""

    kind = "columns-summary"

    cluster_sizes: Annotated[IntArray, Spec("clusters", low=0)]
    clusters: Annotated[IntArray, Spec("clusters", low=0)]
    n_updates: int
    n_coinciding: int | None = Field(default=None, ge=0)
    tolerances: Annotated[FloatArray, Spec("t", low=0)]


class LabelsTold(Record):
    """Memory of split columns: SHA-256 (hex) of the last announced labels."""

    kind = "labels-told"

    digest: str = Field(pattern=r"^[0-9a-f]{64}$")


class OwnCentroids(Record):
    """Memory of split columns: this party's coordinates of the centroids."""

    kind = "own-centroids"

    number: int
    centroids: Annotated[FloatArray, Spec("k", "m")]


class RacingStarts(Record):
    """Memory: V(0) of each start in the race, until one is chosen."""

    kind = "racing"

    centroids: Annotated[FloatArray, Spec("lanes", "k", "m")]
