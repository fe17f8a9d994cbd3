"""Messages and memory records of the stage in which parties agree on a start."""

from __future__ import annotations

from typing import Annotated

from clustering_protocols.records.arrays import FloatArray, IntArray, Spec
from clustering_protocols.records.record import Record


class Propose(Record):
    """Task: compute the centroids of your own clusters, and seal them to the leader."""

    kind = "propose"


class StartProposal(Record):
    """Contribution: confirms that the candidates were sealed to the leader."""

    kind = "proposed"


class Candidates(Record):
    """Envelope: the centroids and sizes of a party's own clusters.

    centroids: rounded, in scaled units.
    sizes: the rows of each cluster, rounded to a multiple of five; 0 without a cluster.
    """

    kind = "candidates"
    meaning = (
        "Rounded centroids of your own clusters, each over five of your rows or "
        "more, for the first party."
    )

    centroids: Annotated[FloatArray, Spec("k", "m")]
    sizes: Annotated[IntArray, Spec("k")]


class ProposedByAll(Candidates):
    """Memory of the leader: the candidates of all parties, concatenated in slot order."""

    kind = "proposed-by-all"


class Settle(Record):
    """Task: if you are the leader, determine the start and seal it to all parties."""

    kind = "settle"


class StartSettled(Record):
    """Contribution: confirms the task and, from the leader, that the start was sent."""

    kind = "settled"


class KeepStart(Record):
    """Task: store the start, which a party needs even if it skips the first update."""

    kind = "confirm"


class StartKept(Record):
    """Contribution: confirms that the party has stored the start."""

    kind = "confirmed"


class StartCentroids(Record):
    """Envelope and memory: the initial centroids V(0), in scaled units."""

    kind = "start-centroids"
    meaning = "The centroids from which all parties start, for the parties."

    centroids: Annotated[FloatArray, Spec("k", "m")]
