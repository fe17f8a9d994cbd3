"""Records of data collaboration clustering."""

from __future__ import annotations

from typing import Annotated

from clustering_protocols.records.arrays import FloatArray, IntArray, Spec
from clustering_protocols.records.record import Record


class Project(Record):
    """Task: project your rows and the anchors. The roster fixes the number of anchors."""

    kind = "project"


class Projections(Record):
    """Contribution: the reduced rows X̃_ij and the reduced anchors X̃^anc_ij.

    width: at most the party's number of features, which the roster lists.
    """

    kind = "projections"
    meaning = (
        "Your rows in fewer dimensions, rotated by a secret map; the analyst reads "
        "the distances between them."
    )

    rows: Annotated[FloatArray, Spec("n", "width")]
    anchors: Annotated[FloatArray, Spec("r", "width")]


class Reduction(Record):
    """Memory: the width and rank of the private map f_ij, shown to the party's operator."""

    kind = "reduction"

    width: int
    rank: int


class KeptMap(Record):
    """The private map f_ij: x -> ((x - offset) / scale) axes.

    The party stores this map in its memory if the terms let it label new rows.
    """

    kind = "kept-map"

    offset: Annotated[FloatArray, Spec("m")]
    scale: Annotated[FloatArray, Spec("m")]
    axes: Annotated[FloatArray, Spec("m", "width")]

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return the images (n, width) of rows (n, m)."""
        return ((X - self.offset) / self.scale) @ self.axes


class RowGroupLabels(Record):
    """Result for the parties of a row group: labels, in the order of the sent rows."""

    kind = "row-group-labels"

    labels: Annotated[IntArray, Spec("n", low=0)]
    cluster_sizes: Annotated[IntArray, Spec("k", low=0)]


class RowGroupModel(RowGroupLabels):
    """Result if the terms disclose more than labels. Withheld fields are empty.

    coordinates: Z_i, the rows of the row group in the space that was clustered.
    centroids: θ, in the same space.
    map_matrix, map_offset: G_i and g_i, the collaboration map of the row group.
    """

    kind = "row-group-model"

    coordinates: Annotated[FloatArray, Spec("n_coordinates", "dims")]
    centroids: Annotated[FloatArray, Spec("k", "dims")]
    map_matrix: Annotated[FloatArray, Spec("width", "map_dims")]
    map_offset: Annotated[FloatArray, Spec("map_dims")]


class Summary(Record):
    """The coordinator's summary.

    starts: for each start of k-means, the numbers of the rows that were its initial
        centroids. Rows are numbered through all row groups in turn, in the order in
        which they were sent. Anyone who holds the pooled data in that order can start
        k-means from the same rows.
    """

    kind = "summary"

    cluster_sizes: Annotated[IntArray, Spec("k", low=0)]
    starts: Annotated[IntArray, Spec("n_init", "k", low=0)]
    inertia: float
    n_dimensions: int
