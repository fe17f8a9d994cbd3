"""Anchor data X^anc: made-up rows that only the parties of a column group know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from clustering_protocols.contract import PartyRole, PeerMessage, Reply, leader_content
from clustering_protocols.numerics.data_source import DataSource, matrix
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import FloatArray, Spec
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.secrets import group_of
from clustering_protocols.shared_stages.statistics import magnitudes
from clustering_protocols.shared_stages.statistics.by_leader import PooledMoments
from clustering_protocols.terms.preparation import Ranges

from .params import DataCollaboration, DcContext, count_session_anchors

_UNIFORM_SPREAD = 12.0**-0.5  # standard deviation of a uniform number of (0, 1)
_SMOTE_NEIGHBORS = 5


def draw(
    params: DataCollaboration, n_rows: int, moments: PooledMoments, stream: KeyedStream
) -> FloatArray:
    """Draw anchors X^anc (n_rows, m) in the units of the data, from pooled moments.

    gaussian: normal numbers, made orthogonal, so that columns have exactly the pooled
        mean and no correlation (this needs n_rows > m). Every rotation of them has the
        same distribution, so a blind source separation of their projections gains
        nothing.
    rotated: standardised uniform numbers multiplied by a secret Haar-random rotation,
        so that features are not the independent components.

    All columns have equal standard deviations in the units in which the private maps
    see them. If each column kept its feature's standard deviation, and the maps only
    centred, the covariance of the projections would reveal the direction of every
    feature.
    """
    m = len(moments.mean)
    if params.anchor.kind == "rotated":
        uniform = (stream.uniform(n_rows, m) - 0.5) / _UNIFORM_SPREAD
        standard = uniform @ stream.rotation(m)
    else:
        standard = np.sqrt(n_rows) * stream.orthogonal_columns(n_rows, m)
    spread = moments.spread
    if params.scaling not in {"shared", "local"}:
        spread = np.full_like(spread, np.sqrt(np.mean(np.square(spread))))
    return moments.mean + spread * standard


def uniform(ranges: Ranges, n_rows: int, stream: KeyedStream) -> FloatArray:
    """Draw anchors (n_rows, m) uniformly within the range of each feature (the paper)."""
    span = ranges.high - ranges.low
    return ranges.low + span * stream.uniform(n_rows, len(span))


def low_rank(X: FloatArray, n_rows: int, stream: KeyedStream) -> FloatArray:
    """Draw anchors (n_rows, m) from a low-rank Gaussian model of X (n, m).

    Half of the principal directions keep their variance, and each of the others gets
    the mean of the remaining variances, as in probabilistic principal components
    (Tipping and Bishop, 1999). If that mean is 0, they get the smallest variance of the
    first half instead, so that the anchors span all features.
    """
    mean = X.mean(axis=0)
    m = X.shape[1]
    variances, axes = np.linalg.eigh(np.atleast_2d(np.cov(X, rowvar=False)))
    variances, axes = np.maximum(variances[::-1], 0.0), axes[:, ::-1]
    rank = (m + 1) // 2
    residual = variances[rank:].mean() if rank < m else 0.0
    variances[rank:] = residual if residual > 0 else variances[:rank].min()
    rows: FloatArray = (stream.normal(n_rows, m) * np.sqrt(variances)) @ axes.T
    rows += mean
    return rows


def smote(X: FloatArray, n_rows: int, stream: KeyedStream) -> FloatArray:
    """Draw points (n_rows, m) between rows of X (n, m) and their neighbours.

    N. Chawla et al., "SMOTE: synthetic minority over-sampling technique", 2002: rows
    are drawn at random, and each neighbour from the row's five nearest in standardised
    units.
    """
    from scipy.spatial import cKDTree  # slow: declaring stages imports this module

    spread = X.std(axis=0)
    Z = X / np.where(spread > 0, spread, 1.0)
    n_neighbors = min(_SMOTE_NEIGHBORS, len(X) - 1)
    neighbors = cKDTree(Z).query(Z, n_neighbors + 1)[1][:, 1:]
    first = (stream.uniform(n_rows) * len(X)).astype(np.int64)
    neighbor = (stream.uniform(n_rows) * n_neighbors).astype(np.int64)
    second = neighbors[first, neighbor]
    rows: FloatArray = X[first] + stream.uniform(n_rows, 1) * (X[second] - X[first])
    return rows


_WARNING = (
    "The anchors of your column group were synthesised from your rows; its other "
    "members hold them."
)


class MakeAnchors(Record):
    """Task: the leader of each column group makes the anchors."""

    kind = "make-anchors"


class AnchorsMade(Record):
    """Contribution, empty: the leader has sent the anchors to other members."""

    kind = "anchors-made"


class AnchorRows(Record):
    """Envelope, and memory of the receiver: the anchors X^anc of the column group."""

    kind = "anchor-rows"
    meaning = "Synthetic rows near to yours, for the parties of your column group."

    rows: Annotated[FloatArray, Spec("r", "m")]


class AnchorsParty(PartyRole[DataCollaboration, MakeAnchors, AnchorRows]):
    """Makes the anchors if its party leads the column group; else receives them."""

    def reply(self, context: DcContext, task: MakeAnchors, data: DataSource) -> Reply:
        """If this party is the leader, make the anchors and seal them to members."""
        leader, *members = group_of(context.session.layout, context.slot, "column")
        if context.slot.name != leader:
            return Reply(contribution=AnchorsMade())
        synthesise = (
            low_rank if context.session.params.anchor.kind == "low_rank" else smote
        )
        n_rows = count_session_anchors(context.session)
        # Fresh anchors in a repeated attempt would disclose more about the same rows.
        stream = context.lasting_stream("anchors")
        rows = AnchorRows(rows=synthesise(matrix(data), n_rows, stream))
        return Reply(
            contribution=AnchorsMade(),
            envelopes=[PeerMessage(peer=slot, content=rows) for slot in members],
            remember=[rows],
            notes={"warning": _WARNING},
        )

    def receive(
        self, context: DcContext, envelopes: Sequence[PeerMessage[AnchorRows]]
    ) -> Sequence[Record]:
        """Store the anchors that the leader made."""
        leader = group_of(context.session.layout, context.slot, "column")[0]
        rows = leader_content(leader, envelopes, "Anchors")
        width = context.session.member(context.slot.name).n_columns
        rows.require({"m": width, "r": count_session_anchors(context.session)})
        magnitudes.check_magnitudes("An anchor", rows.rows)
        return [rows]
