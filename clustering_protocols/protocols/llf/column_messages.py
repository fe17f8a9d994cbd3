"""Records of split columns."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from clustering_protocols.numerics.metrics import Figures
from clustering_protocols.records.arrays import FloatArray, IntArray, Spec, WordArray
from clustering_protocols.records.record import Record


class MeasureGroups(Record):
    """Task: measure the first rows that travel against the means of their groups."""

    kind = "measure-groups"


class GroupDistances(Record):
    """Contribution: squared distances to the means of the groups, as ring elements."""

    kind = "group-distances"
    reach = "hidden"
    meaning = (
        "Distances of your rows to means of groups, masked: nobody can read them alone."
    )

    words: Annotated[WordArray, Spec("n", "groups")]


class StartFrom(Record):
    """Task: start each cluster from the mean of these rows, the first that travel."""

    kind = "start-from"

    labels: Annotated[IntArray, Spec("n_labels", low=0)]


class MeasureDistances(Record):
    """Task: measure all rows against your coordinates of the centroids.

    labels, memberships: of the update before, in the order in which rows travel; the
    one that the algorithm does not have stays empty, and both do at first.
    """

    kind = "measure"

    number: int = Field(ge=1)
    labels: Annotated[IntArray, Spec("n_labels", low=0)]
    memberships: Annotated[FloatArray, Spec("n_memberships", "k", low=0, high=1)]


class Distances(Record):
    """Contribution: squared distances over own columns, as ring elements."""

    kind = "distances"
    reach = "hidden"
    meaning = (
        "Distances of your rows to the centroids, masked: nobody can read them alone."
    )

    words: Annotated[WordArray, Spec("n", "k")]


class Scatter(Record):
    """Task: say how your columns scatter within and between the final clusters.

    labels: those of the update that was told last; a party refuses any others.
    """

    kind = "scatter"

    labels: Annotated[IntArray, Spec("n_labels", low=0)]


class ScatterShare(Record):
    """Contribution: Σ ‖x - m_c‖² and Σ n_c ‖m_c - m‖² over own columns, encoded."""

    kind = "scattered"
    reach = "hidden"
    meaning = "Sums of squared distances, masked: nobody can read them alone."

    words: Annotated[WordArray, Spec(2)]


class ColumnsState(Record):
    """The analyst's state between rounds of split columns.

    roots: roots of the squared distances of the update before (fuzzy c-means).
    rests, n_coinciding: of the end, once it asks how the final clusters scatter.
    """

    kind = "measuring"

    phase: Literal["measure", "scatter"] = "measure"
    number: int
    rests: bool = False
    n_coinciding: int = 0
    labels: Annotated[IntArray, Spec("n_labels")]
    memberships: Annotated[FloatArray, Spec("n_memberships", "k")]
    roots: Annotated[FloatArray, Spec("n_roots", "k")]
    tolerances: Annotated[FloatArray, Spec("t")]


class GroupLabels(Record):
    """Result for the row group, in the order in which rows travelled."""

    kind = "grouped"

    labels: Annotated[IntArray, Spec("n", low=0)]
    memberships: Annotated[FloatArray, Spec("n_memberships", "k", low=0, high=1)]
    cluster_sizes: Annotated[IntArray, Spec("clusters", low=0)]
    n_updates: int
    n_coinciding: int = Field(ge=0)
    figures: Figures


class ColumnsSummary(Record):
    """What the coordinator reads of split columns."""

    kind = "columns-summary"

    cluster_sizes: Annotated[IntArray, Spec("clusters", low=0)]
    clusters: Annotated[IntArray, Spec("clusters", low=0)]
    n_updates: int
    n_coinciding: int | None = Field(default=None, ge=0)
    tolerances: Annotated[FloatArray, Spec("t", low=0)]


class LabelsTold(Record):
    """Memory of split columns: SHA-256 (hex) of the labels that were told last."""

    kind = "labels-told"

    digest: str = Field(pattern=r"^[0-9a-f]{64}$")


class OwnCentroids(Record):
    """Memory of split columns: this party's coordinates of the centroids."""

    kind = "own-centroids"

    number: int
    centroids: Annotated[FloatArray, Spec("k", "m")]
