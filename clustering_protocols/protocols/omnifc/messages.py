"""Records of OmniFC."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from clustering_protocols.records.arrays import FloatArray, IntArray, Spec, WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.prime import P

from .units import MAX_BITS


class EncodeRows(Record):
    """Task of round 1: encode your rows, and send each party its shares."""

    kind = "share"


class SharesSent(Record):
    """Contribution of round 1, empty: the shares are in envelopes."""

    kind = "shared"


class RowShares(Record):
    """Envelope: shares f_x(β_j) of the sender's rows x, for the party with point β_j."""

    kind = "row-shares"
    reach = "hidden"
    meaning = "Shares of your rows, one for each party: nobody can read them alone."

    shares: Annotated[WordArray, Spec("n", "width", high=P - 1)]


class OwnShares(RowShares):
    """Memory: the precision q, and the party's own shares of its rows."""

    kind = "own-shares"

    bits: int


class HeldShares(RowShares):
    """Memory: the precision q, and the party's shares of all rows in the order of slots."""

    kind = "held-shares"

    bits: int


class Compare(Record):
    """Task of round 2: send the distances between your shares of all rows."""

    kind = "compare"


class EncodedDistances(Record):
    """Contribution of round 2: ‖z_x - z_y‖² mod p of a party's shares, condensed.

    With ``hide_segments``, the distances are weighted and masked, so that only their
    sum over all parties can be read: the distances between the rows. With landmarks,
    which precede the rows, only pairs with a landmark are sent.

    bits: the precision q, which is equal at all parties.
    """

    kind = "answer"
    reach = "hidden"
    meaning = (
        "Distances between encoded rows, masked: the analyst reads only what all "
        "answers give together."
    )

    bits: int = Field(ge=0, le=MAX_BITS)

    distances: Annotated[WordArray, Spec("pairs", high=P - 1)]


class RowGroupLabels(Record):
    """Result for one party: labels of its rows in the order they were sent; -1 is noise."""

    kind = "row-group-labels"

    labels: Annotated[IntArray, Spec("n", low=-1)]
    cluster_sizes: Annotated[IntArray, Spec("k", low=0)]


class RowGroupMemberships(RowGroupLabels):
    """Result of fuzzy_cmeans: labels, memberships, and how many clusters coincide."""

    kind = "row-group-memberships"

    n_coinciding: int = Field(ge=0)

    memberships: Annotated[FloatArray, Spec("n", "k", low=0, high=1)]


class Summary(Record):
    """The coordinator's summary.

    starts: for each start, the numbers of the rows that were its initial centroids;
        empty if the algorithm has no starts. Rows are numbered through all parties in
        turn, in the order in which they were sent.
    eps: the value that dbscan used; 0 for other algorithms.
    n_coinciding: number of clusters of fuzzy_cmeans that equal a lower-numbered one.
    """

    kind = "summary"

    cluster_sizes: Annotated[IntArray, Spec("k", low=0)]
    starts: Annotated[IntArray, Spec("n_init", "n_starts", low=0)]
    noise_rows: int
    bits: int
    eps: float
    n_coinciding: int = Field(ge=0)
