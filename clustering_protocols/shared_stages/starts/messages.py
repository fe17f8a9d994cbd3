"""Records by which parties of split rows agree on a start."""

from __future__ import annotations

from typing import Annotated, Literal

from clustering_protocols.records.arrays import FloatArray, IntArray, Spec
from clustering_protocols.records.record import Record


class Propose(Record):
    """Task: seal candidates to the leader."""

    kind = "propose"


class StartProposal(Record):
    """Contribution."""

    kind = "proposed"


class Candidates(Record):
    """Envelope: centroids and sizes of a party's own clusters, stacked start by start.

    centroids: in scaled units.
    sizes: rows of each cluster, to the nearest five; 0 where there is no cluster.
    """

    kind = "candidates"
    meaning = (
        "Rounded centroids of your own clusters, each over five of your rows or "
        "more, for the first party."
    )

    centroids: Annotated[FloatArray, Spec("k", "m")]
    sizes: Annotated[IntArray, Spec("k")]


class ProposedByAll(Candidates):
    """Memory of the leader: the candidates of all, stacked party by party."""

    kind = "proposed-by-all"


class Settle(Record):
    """Task: the leader seals the start to all."""

    kind = "settle"


class StartSettled(Record):
    """Contribution."""

    kind = "settled"


class KeepStart(Record):
    """Task: store the start; parties that skip the first update need it too."""

    kind = "confirm"


class StartKept(Record):
    """Contribution."""

    kind = "confirmed"


class StartState(Record):
    """The analyst's state while the parties agree on a start: its last task."""

    kind = "starting"

    asked: Literal["propose", "settle", "confirm"]


class LaneStarts(Record):
    """Envelope, and memory until a start is chosen: V(0) per lane, in scaled units."""

    kind = "lane-starts"
    meaning = "The centroids from which all parties start, for the parties."

    centroids: Annotated[FloatArray, Spec("lanes", "k", "m")]


class StartCentroids(Record):
    """Envelope and memory: V(0), in scaled units."""

    kind = "start-centroids"
    meaning = "The centroids from which all parties start, for the parties."

    centroids: Annotated[FloatArray, Spec("k", "m")]
