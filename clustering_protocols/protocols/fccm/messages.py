"""Records of collaborative fuzzy co-clustering."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from clustering_protocols.arrays import FloatArray, IntArray, Spec, WordArray
from clustering_protocols.records import Record

UPDATES: Final = "updates"
"""The name of the stage of updates; it binds masks too."""


class Add(Record):
    """Task: add your share of the next sums, given the total of the round before.

    overflowed: whether a site could not encode its share of that round; then there is
    no total.
    """

    kind = "add"

    number: int = Field(ge=1)
    overflowed: bool
    total: Annotated[WordArray, Spec("before")]


class Share(Record):
    """Contribution: a site's masked share; the leader says how far it has come.

    overflows: this site's share is too large to be encoded; its words are noise.
    n_iterations, moved: of the leader; the largest change of an object membership
    in the last iteration, to two digits.
    stop: of the leader: the iteration before was the last.
    """

    kind = "share"

    words: Annotated[WordArray, Spec("words")]
    overflows: bool = False
    n_iterations: int = Field(default=0, ge=0)
    moved: float | None = Field(default=None, ge=0)
    stop: bool = False


class Adding(Record):
    """The analyst's state: the number of the sums under way, and what moved so far."""

    kind = "adding"

    number: int
    telling: bool
    tolerances: Annotated[FloatArray, Spec("t")]


class Tell(Add):
    """Task: say how the sizes of the clusters are.

    The total is not needed any more; that it is none but noise shows that some site was
    given another total before.
    """

    kind = "tell"


class Published(Record):
    """What the analyst and the coordinator may know of a result.

    clusters: numbers of the clusters that are large enough to be told of.
    sizes: how many objects belong most to each of them.
    """

    kind = "published"

    clusters: Annotated[IntArray, Spec("p", low=0)]
    sizes: Annotated[IntArray, Spec("p", low=0)]
    n_iterations: int = Field(ge=0)


class Told(Published):
    """Contribution: a mark of the sizes of all clusters; the leader says large ones.

    digest: HMAC-SHA256 under the row group's secret; all sites say the same one.
    """

    kind = "told"

    digest: str = Field(pattern=r"^[0-9a-f]{64}$")


class Memberships(Record):
    """Memory: where a site stands while sums are under way.

    number, transcript: of these sums.
    n_iterations, moved: of the last iteration that is complete.
    objects: its U (n, C), in the order in which rows travel.
    items: its W (m, C), of this site.
    weights: e_cj = exp(exponent - shift) (m, C) from which the sums under way come;
    ``site``: their W.
    shifts: per cluster (``global``).
    repeats: how often this iteration's sums were asked for.
    """

    kind = "memberships"

    number: int
    transcript: str
    n_iterations: int
    moved: float | None
    repeats: int
    objects: Annotated[FloatArray, Spec("n", "k", low=0, high=1)]
    items: Annotated[FloatArray, Spec("m", "k", low=0)]
    weights: Annotated[FloatArray, Spec("m", "k", low=0)]
    shifts: Annotated[FloatArray, Spec("k")]


class Done(Record):
    """Result: a site knows everything already."""

    kind = "done"


class Summary(Published):
    """What the coordinator reads; ``tolerances`` are the moves of each iteration."""

    kind = "summary"

    tolerances: Annotated[FloatArray, Spec("t", low=0)]
