"""Split columns: how final clusters scatter over a party's columns, for the figures.

Within each cluster around its mean m_c, and the means around the mean m of all rows; of
both, squares over columns add up over the parties. The labels are those of the update
that was told last, and no others: for them the second sum follows from the differences
of distances that the analyst read in that update,

    n_c ‖m_c - m_l‖² = Σ_{i in c} (‖x_i - m_l‖² - ‖x_i - m_c‖²),
    Σ_c n_c ‖m_c - m‖² = Σ_{c<l} n_c n_l ‖m_c - m_l‖² / n,

and both together are Σ ‖x - m‖², whatever the labels are. So an analyst that tells
labels of its choice learns by this round what it learns by any: how far all rows
together scatter.
"""

from __future__ import annotations

from hashlib import sha256

import numpy as np

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.contract import Reply
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.quality.block_sums import add_by_label
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.secrecy.fixed_point import FixedPoint
from clustering_protocols.shared_stages.alignment.digests import RowOrder
from clustering_protocols.shared_stages.masked_sums import MaskedSum, mask

from . import messages
from .features import Scaler, batches, scaler, scaler_of
from .params import LlfContext, LlfSession


def hard_labels(asked: messages.MeasureDistances) -> IntArray:
    """Return the labels that an update tells, the largest membership's where fuzzy."""
    if not len(asked.memberships):
        return asked.labels
    labels: IntArray = np.argmax(asked.memberships, axis=1).astype(np.int64)
    return labels


def digest_labels(labels: IntArray) -> messages.LabelsTold:
    """Return what a party remembers of the labels of an update."""
    digest = sha256(np.ascontiguousarray(labels).tobytes()).hexdigest()
    return messages.LabelsTold(digest=digest)


def check_told(context: LlfContext, labels: IntArray) -> None:
    """Refuse labels other than those that were told last.

    Raises ProtocolFailed.
    """
    known = context.memory.get(messages.LabelsTold)
    if known is None or known.digest != digest_labels(labels).digest:
        raise ProtocolFailed(
            "The analyst asks for figures of labels that are not those of the last "
            "update."
        )


def reply(context: LlfContext, asked: messages.Scatter, data: DataSource) -> Reply:
    """Return this party's masked share of both sums; it remembers how rows are labelled."""
    check_told(context, asked.labels)
    params = context.session.params
    labels = np.empty(data.n_rows, dtype=np.int64)
    labels[context.recall(RowOrder).order] = asked.labels
    own = _scatter(data, scaler_of(context), labels, params.n_clusters)
    words = build_scatter_encoding(context.session).encode(own)
    of = MaskedSum.from_context(context, context.session.slots, "scatter")
    mask(context, words, of, minimum_members=params.least_parties)
    rows = messages.FinalRows(
        labels=labels, memberships=np.empty((0, params.n_clusters))
    )
    return Reply(contribution=messages.ScatterShare(words=words), remember=[rows])


def build_scatter_encoding(session: LlfSession) -> FixedPoint:
    """Return how both sums stand as ring elements: no more than Σ ‖x‖²."""
    columns = range(session.layout.n_column_groups)
    limits = [scaler(session, column, None).square_limit for column in columns]
    return FixedPoint.of(np.concatenate(limits).sum())


def _scatter(data: DataSource, scale: Scaler, labels: IntArray, k: int) -> FloatArray:
    """Return Σ ‖x - m_c‖² and Σ n_c ‖m_c - m‖² over own columns."""
    sums, counts = np.zeros((k, scale.offset.size)), np.bincount(labels, minlength=k)
    for rows, batch in batches(data):
        add_by_label(batch, *scale.affine, labels[rows], sums)
    means = sums / np.maximum(counts, 1)[:, None]
    apart = np.square(means - sums.sum(axis=0) / len(labels)).sum(axis=1)
    within = 0.0
    for rows, batch in batches(data):
        within += float(np.square(scale(batch) - means[labels[rows]]).sum())
    return np.array([within, float(counts @ apart)])
