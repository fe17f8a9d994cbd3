"""The labels of the chosen run, for stages that know no protocol."""

from __future__ import annotations

from typing import Annotated

from clustering_protocols.records.arrays import IntArray, Spec
from clustering_protocols.records.record import Record


class Assignment(Record):
    """Memory: the labels of this party's rows that take part.

    labels: -1 for rows of no cluster.
    chosen: the number of the run that they are of.
    result: SHA-256 (hex) of the result that they come from.
    """

    kind = "assignment"

    labels: Annotated[IntArray, Spec("n", low=-1)]
    chosen: int
    result: str
