"""Records of collaborative fuzzy co-clustering."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.records.arrays import FloatArray, IntArray, Spec, WordArray
from clustering_protocols.records.record import Record

UPDATES: Final = "updates"
"""The name of the stage of updates, which is also part of what masks are bound to."""

Lanes = Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=100)]
"""Numbers of starts, ascending: lane l is start l, which shares the rounds with others."""


class Add(Record):
    """Task: send your share of the next sums, given the total of the previous round.

    lanes: the starts that, according to the leader, have not converged; the next sums
        cover only these starts.
    overflowed: lanes for which some site could not encode its share in the previous
        round; if there are any, the total is empty.
    total: the sum of the shares of the previous round, for the lanes that were under
        way then.
    """

    kind = "add"
    version = 2

    number: int = Field(ge=1)
    lanes: Lanes
    overflowed: Lanes
    total: Annotated[WordArray, Spec("before")]


class SiteShare(Record):
    """Contribution: a site's masked share and, from the leader, the progress of the starts.

    overflows: lanes for which this site's share is too large to encode; if there are
        any, the words of the share are noise.
    n_iterations: from the leader; the number of completed iterations.
    moved: from the leader; the largest change of an object's membership in the last
        iteration, over all lanes that took part in it, to two digits.
    under_way: from the leader; the lanes that have not converged. The next sums cover
        only these lanes. If the list is empty, the last completed iteration was the
        final one.
    """

    kind = "share"
    reach = "hidden"
    meaning = "Sums of your values, masked: nobody can read them alone."
    version = 2

    words: Annotated[WordArray, Spec("words")]
    overflows: Lanes = Field(default_factory=list)
    n_iterations: int = Field(default=0, ge=0)
    moved: float | None = Field(default=None, ge=0, le=1)
    under_way: Lanes | None = None


class SumsState(Record):
    """The analyst's state between rounds.

    number: number of the latest sums that the sites were asked for; 0 once they are
        asked for sizes.
    lanes: the lanes of the latest sums.
    telling: whether the sites are asked for sizes.
    tolerances: how far memberships moved in each iteration.
    """

    kind = "adding"
    version = 2

    number: int
    lanes: Lanes
    telling: bool
    tolerances: Annotated[FloatArray, Spec("t")]


class ReportSizes(Add):
    """Task: report the sizes of the clusters.

    A site only checks the total, and computes nothing from it. The total is noise if
    another site received a different total in the previous round.
    """

    kind = "tell"


class PublishedResult(Record):
    """The part of a result that the analyst and the coordinator may read.

    clusters: numbers of the clusters that are large enough to be published.
    sizes: for each of these clusters, the number of objects that have their largest
        membership in it, in multiples of five.
    n_iterations: number of iterations of the best start.
    """

    kind = "published"

    clusters: Annotated[IntArray, Spec("p", low=0)]
    sizes: Annotated[IntArray, Spec("p", low=0)]
    n_iterations: int = Field(ge=0)


class SizeReport(PublishedResult):
    """Contribution: a digest of the result and, from the leader, the published part.

    Only the leader adds the quality figures, rounded to six digits.

    digest: HMAC-SHA256, under the row group's secret, of the number of the best start
        and the sizes of all its clusters; equal at all sites.
    """

    kind = "told"
    meaning = "Sizes of the large clusters, rounded to fives, and quality measures of the result."
    version = 2

    digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    figures: Figures | None = None


class Memberships(Record):
    """Memory: a site's state after it sends its share of a sum, until it reads the total.

    number, transcript: identify this sum.
    lanes: the A lanes of this sum, out of L; the others have converged.
    repeats: how many times the sum of this iteration was asked for again.
    n_iterations, moved: for each lane, the number of completed iterations, and how far
        memberships moved in the last one.
    criteria: for each lane that may have converged, the criterion (equation 1);
        otherwise 0.
    objects: U (n, L·C) after these iterations; rows are in the order in which they are
        sent.
    items: W (m, L·C) of this site.
    weights: e_cj = exp(exponent - shift) (m, A·C), from which the sum is computed.
    shifts: (A·C,), the same at all sites.
    """

    kind = "memberships"
    version = 2

    number: int
    transcript: str
    lanes: Lanes
    repeats: int
    n_iterations: Annotated[IntArray, Spec("l", low=0)]
    moved: Annotated[FloatArray, Spec("l", low=0, high=1)]
    criteria: Annotated[FloatArray, Spec("l")]
    objects: Annotated[FloatArray, Spec("n", "columns", low=0, high=1)]
    items: Annotated[FloatArray, Spec("m", "columns", low=0)]
    weights: Annotated[FloatArray, Spec("m", "active", low=0)]
    shifts: Annotated[FloatArray, Spec("active")]


class Done(Record):
    """Result, empty: the sites have computed everything themselves."""

    kind = "done"


class Summary(PublishedResult):
    """The coordinator's summary.

    tolerances: how far memberships moved in each iteration, for the start in which they
        moved farthest.
    """

    kind = "summary"

    tolerances: Annotated[FloatArray, Spec("t", low=0)]
