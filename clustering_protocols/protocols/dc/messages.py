"""Records of data collaboration clustering."""

from __future__ import annotations

from typing import Annotated

from clustering_protocols.arrays import FloatArray, IntArray, Spec
from clustering_protocols.records import Record


class Project(Record):
    """Task: project your rows and the anchors."""

    kind = "project"

    n_anchors: int


class Projections(Record):
    """Contribution: X̃_ij and X̃^anc_ij, and nothing else."""

    kind = "projections"

    rows: Annotated[FloatArray, Spec("n", "width")]
    anchors: Annotated[FloatArray, Spec("r", "width")]


class Waiting(Record):
    """The analyst's state: there is one round, and nothing to remember."""

    kind = "waiting"


class Reduction(Record):
    """Memory: what a party wants to tell its operator about f_ij."""

    kind = "reduction"

    width: int
    rank: int


class RowGroupLabels(Record):
    """Result for the parties of one row group, in the order in which rows travelled."""

    kind = "row-group-labels"

    labels: Annotated[IntArray, Spec("n", low=0)]
    cluster_sizes: Annotated[IntArray, Spec("k", low=0)]


class Summary(Record):
    """What the coordinator reads.

    ``starts`` are positions in the stacked row groups, in the order in which rows
    travelled: whoever holds pooled data in that order can start k-means alike.
    """

    kind = "summary"

    cluster_sizes: Annotated[IntArray, Spec("k", low=0)]
    starts: Annotated[IntArray, Spec("n_init", "k", low=0)]
    inertia: float
    n_dimensions: int
