"""Every record that travels: ``Spec`` names sizes, which the analyst fixes."""

from typing import Annotated

from clustering_protocols.records.arrays import FloatArray, Spec
from clustering_protocols.records.record import Record


class Upload(Record):
    """Task."""

    kind = "upload"


class Centres(Record):
    """Contribution: centres of own rows, and how many rows each has."""

    kind = "centres"
    meaning = "Means of your rows, by cluster, and how many rows each is of."

    centres: Annotated[FloatArray, Spec("k", "m")]
    sizes: Annotated[FloatArray, Spec("k", low=0)]


class Result(Record):
    """Result: the centres of the session."""

    kind = "result"

    centres: Annotated[FloatArray, Spec("k", "m")]
