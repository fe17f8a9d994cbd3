"""Messages and stored records of mixtures."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.records.arrays import FloatArray, IntArray, Spec, WordArray
from clustering_protocols.records.record import Record

UPDATES: Final = "updates"
"""The name of the stage that makes the updates."""


class Update(Record):
    """Task: add up your rows by membership, around the means that result from the total.

    number: the number of the requested sum, from 1.
    total: the total of the previous sum, as ring elements.
    """

    kind = "update"

    number: int = Field(ge=1, le=1001)
    total: Annotated[WordArray, Spec("before")]


class Sums(Record):
    """Contribution: the masked sums of one party.

    last: whether these are the closing sums, after convergence or the last update;
        equal for all parties.
    """

    kind = "sums"
    reach = "hidden"
    meaning = "Sums over your rows by cluster, masked: nobody can read them alone."

    words: Annotated[WordArray, Spec("w")]
    last: bool


class ReportDigest(Record):
    """Task: send the result's digest and, if you are the leader, what the terms publish.

    total: the total of the closing sums, as ring elements.
    """

    kind = "tell"

    total: Annotated[WordArray, Spec("w")]


class PublishedResult(Record):
    """The part of a result that the analyst and the coordinator may read.

    clusters: the numbers of the clusters that are large enough to be published.
    centroids: the rounded means of these clusters, in the units of the columns; empty
        unless the terms publish them.
    sizes: the sizes of these clusters, in multiples of five.
    """

    kind = "published"

    clusters: Annotated[IntArray, Spec("p", low=0)]
    centroids: Annotated[FloatArray, Spec("centroids", "m")]
    sizes: Annotated[IntArray, Spec("p", low=0)]
    n_updates: int = Field(ge=0)


class DigestReport(PublishedResult):
    """Contribution: the digest of the result and, from the leader, the published part.

    digest: HMAC-SHA256 of the result under the group's secret, equal for all parties.
    figures: the quality figures of the run, to six digits; only from the leader.
    """

    kind = "told"
    meaning = "Rounded means, sizes and figures of the clusters of all parties."

    digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    figures: Figures | None = None


class Agreed(Record):
    """Result: empty, because every party computes the components and its own labels."""

    kind = "agreed"


class Summary(PublishedResult):
    """The summary that the coordinator receives."""

    kind = "summary"


class UpdatingState(Record):
    """The analyst's state between rounds; ``number`` is that of the last requested sum."""

    kind = "updating"

    phase: Literal["update", "tell"]
    number: int


class Components(Record):
    """Memory: the components in scaled units, and the share that the party sent last.

    number: the number of the sum to which the share was added.
    transcript: the transcript of the round of that sum, in hex.
    closing: whether the share belongs to the closing sums.
    converged: whether the likelihood has converged.
    lower_bound: mean log likelihood of a row under the previous components; None at
        first.
    weights: the weights π of the components.
    means: the means of the numbers.
    covariances: lower triangles, row by row (full, tied), variances (diag) or a single
        variance (spherical) per component; a single row if tied.
    shares: the proportions of the levels, with the categories side by side.
    own: the ring elements of the share, before masking.
    """

    kind = "components"

    number: int
    transcript: str
    closing: bool
    converged: bool
    lower_bound: float | None
    weights: Annotated[FloatArray, Spec("k")]
    means: Annotated[FloatArray, Spec("k", "numbers")]
    covariances: Annotated[FloatArray, Spec("rows", "entries")]
    shares: Annotated[FloatArray, Spec("k", "levels")]
    own: Annotated[WordArray, Spec("own")]


class FinalRows(Record):
    """Memory: the labels and memberships of this party's rows by the final components."""

    kind = "final-rows"

    labels: Annotated[IntArray, Spec("n", low=0)]
    memberships: Annotated[FloatArray, Spec("n", "k", low=0, high=1)]


class FinalSizes(Record):
    """Memory: the size of each final cluster over the rows of all parties."""

    kind = "final-sizes"

    sizes: Annotated[IntArray, Spec("k", low=0)]
