"""Records of collaborative fuzzy co-clustering."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.records.arrays import FloatArray, IntArray, Spec, WordArray
from clustering_protocols.records.record import Record

UPDATES: Final = "updates"
"""The name of the stage of updates; it binds masks too."""

Lanes = Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=100)]
"""Numbers of starts, in order: lane l is start l on its way through the rounds."""


class Add(Record):
    """Task: add your share of the next sums, given the total of the round before.

    lanes: those that are still under way by the leader's word; sums are asked of these.
    overflowed: lanes whose share some site could not encode in that round; if there are
        any, there is no total.
    total: of the lanes that were under way in that round.
    """

    kind = "add"
    version = 2

    number: int = Field(ge=1)
    lanes: Lanes
    overflowed: Lanes
    total: Annotated[WordArray, Spec("before")]


class SiteShare(Record):
    """Contribution: a site's masked share; the leader says how far it has come.

    overflows: lanes whose share is too large for this site to encode; if there are any,
        its words are noise.
    n_iterations, moved: of the leader; the largest change of an object membership in
    the last iteration, over all lanes that took part in it, to two digits.
    under_way: of the leader: the lanes that have not come to rest. Words of the others
    leave the vector with the next sums; none left: the iteration before was the last.
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
    """The analyst's state: the number of the sums under way, and what moved so far.

    lanes: those that the sums are of.
    """

    kind = "adding"
    version = 2

    number: int
    lanes: Lanes
    telling: bool
    tolerances: Annotated[FloatArray, Spec("t")]


class ReportSizes(Add):
    """Task: say how the sizes of the clusters are.

    The total itself is no longer needed; if it is noise, some site received another
    total before.
    """

    kind = "tell"


class PublishedResult(Record):
    """The part of a result that analyst and coordinator may read.

    clusters: numbers of the clusters that are large enough to publish.
    sizes: number of objects whose largest membership is in each.
    n_iterations: that the best start took.
    """

    kind = "published"

    clusters: Annotated[IntArray, Spec("p", low=0)]
    sizes: Annotated[IntArray, Spec("p", low=0)]
    n_iterations: int = Field(ge=0)


class SizeReport(PublishedResult):
    """Contribution: a mark of the best start and the sizes of all its clusters.

    The leader says large ones, and the figures of that start to six digits. digest:
    HMAC-SHA256 under the row group's secret; all sites say the same one.
    """

    kind = "told"
    meaning = "Sizes of the large clusters and quality measures of the result."
    version = 2

    digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    figures: Figures | None = None


class Memberships(Record):
    """Memory: where a site stands while sums are under way.

    number, transcript: of these sums.
    lanes: the A of all L lanes that the sums are of; the others have come to rest.
    repeats: number of requests for this iteration's sums.
    n_iterations, moved: of each lane's last iteration that is complete.
    criteria: of each lane that may have come to rest (equation 1), else 0.
    objects: U (n, L·C) of these iterations, in the order in which rows travel.
    items: W (m, L·C), of this site.
    weights: e_cj = exp(exponent - shift) (m, A·C) from which the sums under way come.
    shifts: (A·C,), the same at all sites; ``site``: the logarithms of this site's own
    normalisers, so that ``weights`` are their W.
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
    """Result: a site knows everything already."""

    kind = "done"


class Summary(PublishedResult):
    """The coordinator's summary; ``tolerances`` are the moves of each iteration.

    The largest of all starts that took part in it.
    """

    kind = "summary"

    tolerances: Annotated[FloatArray, Spec("t", low=0)]
