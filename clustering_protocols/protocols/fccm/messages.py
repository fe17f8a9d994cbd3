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
    """Task: add your share of the next sums, given the total of the round before.

    lanes: lanes that the leader says are still under way; the sums are of these.
    overflowed: lanes whose share some site could not encode in the round before; if there
        are any, the total is empty.
    total: of the lanes that were under way in the round before.
    """

    kind = "add"
    version = 2

    number: int = Field(ge=1)
    lanes: Lanes
    overflowed: Lanes
    total: Annotated[WordArray, Spec("before")]


class SiteShare(Record):
    """Contribution: a site's masked share; the leader adds how far the starts have come.

    overflows: lanes whose share is too large for this site to encode; if there are any,
        its words are noise.
    n_iterations: from the leader; number of complete iterations.
    moved: from the leader; the largest change of an object membership in the last
        iteration, over all lanes that took part in it, to two digits.
    under_way: from the leader; lanes that have not converged. The next sums are of these
        alone. If empty, the last complete iteration was the final one.
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
    """The analyst's state.

    number: of the sums that were asked for last; 0 once sizes are asked for.
    lanes: lanes of these sums.
    telling: whether sizes are asked for.
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

    The total is only checked: if it is noise, some site received a different total before.
    """

    kind = "tell"


class PublishedResult(Record):
    """The part of a result that analyst and coordinator may read.

    clusters: numbers of the clusters that are large enough to publish.
    sizes: number of objects whose largest membership is in each of these clusters.
    n_iterations: iterations of the best start.
    """

    kind = "published"

    clusters: Annotated[IntArray, Spec("p", low=0)]
    sizes: Annotated[IntArray, Spec("p", low=0)]
    n_iterations: int = Field(ge=0)


class SizeReport(PublishedResult):
    """Contribution: a digest of the best start and the sizes of all its clusters.

    Only the leader fills the published part, and the figures to six digits.

    digest: HMAC-SHA256 under the row group's secret; equal at all sites.
    """

    kind = "told"
    meaning = "Sizes of the large clusters and quality measures of the result."
    version = 2

    digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    figures: Figures | None = None


class Memberships(Record):
    """Memory: the state of a site between its share of a sum and the total.

    number, transcript: of this sum.
    lanes: the A lanes, of L in all, in this sum; the others have converged.
    repeats: how often this iteration's sum was asked for again.
    n_iterations, moved: number of each lane's complete iterations, and how far
        memberships moved in the last of them.
    criteria: of each lane that may have converged (equation 1), else 0.
    objects: U (n, L·C) after these iterations, in the order in which rows travel.
    items: W (m, L·C), of this site.
    weights: e_cj = exp(exponent - shift) (m, A·C), which the sum adds up.
    shifts: (A·C,), the same at all sites; with ``site`` the logarithms of this site's own
        normalisers, so that ``weights`` are W.
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

    tolerances: how far memberships moved in each iteration, in the start in which they
        moved farthest.
    """

    kind = "summary"

    tolerances: Annotated[FloatArray, Spec("t", low=0)]
