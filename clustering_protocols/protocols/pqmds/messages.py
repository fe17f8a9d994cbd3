"""Records of product quantisation with one-dimensional scaling."""

from __future__ import annotations

from typing import Annotated

from clustering_protocols.records.arrays import FloatArray, IntArray, Spec
from clustering_protocols.records.record import Record


class Encode(Record):
    """Task: send the codes of your rows."""

    kind = "encode"


class RowCodes(Record):
    """Contribution: for each row and subspace, the coordinates of the nearest centre."""

    kind = "codes"
    meaning = (
        "A number for each row and group of features; the analyst reads which "
        "rows lie near each other."
    )

    codes: Annotated[FloatArray, Spec("n", "s")]


class CodebookSizes(Record):
    """Memory: the number of centres of each subspace."""

    kind = "codebook-sizes"

    sizes: Annotated[IntArray, Spec("s", low=1)]


class Clusters(Record):
    """Result for one party, in the order in which its rows were sent.

    centroids: centres of the clusters, restricted to this party's own codes.
    """

    kind = "clusters"

    labels: Annotated[IntArray, Spec("n", low=0)]
    cluster_sizes: Annotated[IntArray, Spec("k", low=0)]
    centroids: Annotated[FloatArray, Spec("k", "s")]


class Summary(Record):
    """The coordinator's summary.

    starts: for each start, the numbers of the rows that were its initial centroids, in
        the order in which rows were sent. Anyone who holds the pooled data in that
        order can start k-means from the same rows.
    """

    kind = "summary"

    cluster_sizes: Annotated[IntArray, Spec("k", low=0)]
    starts: Annotated[IntArray, Spec("n_init", "k", low=0)]
    inertia: float
    n_codes: int
