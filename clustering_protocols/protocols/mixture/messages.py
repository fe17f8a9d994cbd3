"""Records of mixtures."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.records.arrays import FloatArray, IntArray, Spec, WordArray
from clustering_protocols.records.record import Record

UPDATES: Final = "updates"
"""The name of the stage of updates."""


class Update(Record):
    """Task: add up your rows by membership, around the means that follow from the total.

    number: number of the sum, from 1.
    total: total of the previous sum, as ring elements.
    """

    kind = "update"

    number: int = Field(ge=1, le=1001)
    total: Annotated[WordArray, Spec("before")]


class Sums(Record):
    """Contribution: the masked sums of one party.

    last: whether these are the closing sums, after convergence or the last update; equal
        at all parties.
    """

    kind = "sums"
    reach = "hidden"
    meaning = "Sums over your rows by cluster, masked: nobody can read them alone."

    words: Annotated[WordArray, Spec("w")]
    last: bool


class ReportDigest(Record):
    """Task: send the digest of the result; the leader also sends the published part.

    total: of the closing sums.
    """

    kind = "tell"

    total: Annotated[WordArray, Spec("w")]


class PublishedResult(Record):
    """The part of a result that analyst and coordinator may read.

    clusters: numbers of the clusters that are large enough to publish.
    centroids: their means, in the units of the columns; empty unless the terms publish
        them.
    sizes: their sizes, in multiples of five.
    """

    kind = "published"

    clusters: Annotated[IntArray, Spec("p", low=0)]
    centroids: Annotated[FloatArray, Spec("centroids", "m")]
    sizes: Annotated[IntArray, Spec("p", low=0)]
    n_updates: int = Field(ge=0)


class DigestReport(PublishedResult):
    """Contribution: the digest of the result, and the leader's published part.

    digest: HMAC-SHA256 under the group's secret; equal at all parties.
    figures: of the run, to six digits.
    """

    kind = "told"
    meaning = "Rounded means, sizes and figures of the clusters of all parties."

    digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    figures: Figures | None = None


class Agreed(Record):
    """Result, empty: parties have computed the same components, and their own labels."""

    kind = "agreed"


class Summary(PublishedResult):
    """The coordinator's summary."""

    kind = "summary"


class UpdatingState(Record):
    """The analyst's state between rounds, with the number of the last requested sum."""

    kind = "updating"

    phase: Literal["update", "tell"]
    number: int


class Components(Record):
    """Memory: the components after an update, in scaled units, and the party's last share.

    number, transcript: of the sum to which that share was added; transcript in hex.
    closing: whether the share is of the closing sums.
    converged: whether the likelihood has converged.
    lower_bound: mean log likelihood of a row under the previous components; None at start.
    weights: π.
    means: means of the numbers.
    covariances: lower triangles, row by row (full, tied), variances (diag) or one
        variance (spherical); a single row if tied.
    shares: shares of the levels, categories side by side.
    own: ring elements of the share, before masking.
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
    """Memory: memberships of this party's rows under the final components."""

    kind = "final-rows"

    labels: Annotated[IntArray, Spec("n", low=0)]
    memberships: Annotated[FloatArray, Spec("n", "k", low=0, high=1)]


class FinalSizes(Record):
    """Memory: rows of all parties in each cluster, once all agree on the result."""

    kind = "final-sizes"

    sizes: Annotated[IntArray, Spec("k", low=0)]
