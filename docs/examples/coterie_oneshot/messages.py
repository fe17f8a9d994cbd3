"""All records that are sent; ``Spec`` names array sizes, which the analyst sets."""

from typing import Annotated

from clustering_protocols.records.arrays import FloatArray, Spec
from clustering_protocols.records.record import Record


class Upload(Record):
    """Task: send the centres of your clusters."""

    kind = "upload"


class Centres(Record):
    """Contribution: the centres of a party's clusters, and their numbers of rows."""

    kind = "centres"
    meaning = "The mean of your rows in each cluster, and the number of these rows."

    centres: Annotated[FloatArray, Spec("k", "m")]
    sizes: Annotated[FloatArray, Spec("k", low=0)]


class Result(Record):
    """Result: the centres of the session's clusters."""

    kind = "result"

    centres: Annotated[FloatArray, Spec("k", "m")]
