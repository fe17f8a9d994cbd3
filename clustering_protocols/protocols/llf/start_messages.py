"""Records of the start of split rows."""

from __future__ import annotations

from typing import Annotated, Literal

from clustering_protocols.arrays import FloatArray, Spec, WordArray
from clustering_protocols.records import Record


class Propose(Record):
    """Task: seal candidates to the leader."""

    kind = "propose"


class Proposed(Record):
    """Contribution."""

    kind = "proposed"


class Candidates(Record):
    """Envelope: means of five neighbours, in scaled units, start below start."""

    kind = "candidates"

    centroids: Annotated[FloatArray, Spec("k", "m")]


class ProposedByAll(Candidates):
    """Memory of the leader: the candidates of all, party below party."""

    kind = "proposed-by-all"


class Settle(Record):
    """Task: the leader seals the start to all."""

    kind = "settle"


class Settled(Record):
    """Contribution."""

    kind = "settled"


class Confirm(Record):
    """Task: keep the start that came; who is left out of the first update needs it too."""

    kind = "confirm"


class Confirmed(Record):
    """Contribution."""

    kind = "confirmed"


class Starting(Record):
    """The analyst's state while the parties agree on a start: what it asked last."""

    kind = "starting"

    asked: Literal["propose", "settle", "confirm"]


class LaneStarts(Record):
    """Envelope, and memory until one is chosen: V(0) of each start, in scaled units."""

    kind = "lane-starts"

    centroids: Annotated[FloatArray, Spec("lanes", "k", "m")]


class Racing(Record):
    """Memory: the sum by which starts are compared.

    transcript: when its share was made (hex).
    own: what this party added, until the total was read.
    """

    kind = "racing"

    transcript: str
    own: Annotated[WordArray, Spec("own")]

    def without_own(self) -> Racing:
        """Return the same without what this party added."""
        return self.model_copy(update={"own": self.own[:0]})


class StartCentroids(Record):
    """Envelope and memory: V(0), in scaled units."""

    kind = "start-centroids"

    centroids: Annotated[FloatArray, Spec("k", "m")]
