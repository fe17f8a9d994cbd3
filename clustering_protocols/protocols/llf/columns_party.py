"""A party of split columns: its start, distances out, clusters in, centroids stay home.

Split columns: how final clusters scatter over a party's columns, for the figures.

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

from clustering_protocols.algorithms.coincidence import equalise_coordinates
from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.contract import Outcome, PartyRole, Reply
from clustering_protocols.contract.published import order_by_size
from clustering_protocols.numerics.data_source import DataSource, batches
from clustering_protocols.quality.block_sums import add_by_label
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages import dominance
from clustering_protocols.shared_stages.alignment.digests import RowOrder
from clustering_protocols.shared_stages.masked_sums import MaskedSum, mask
from clustering_protocols.shared_stages.scaling import Scaler, check_ranges, scaler_of
from clustering_protocols.shared_stages.secrets import group_stream
from clustering_protocols.shared_stages.starts import clusters
from clustering_protocols.shared_stages.starts.roles import without_messages

from . import kernels, messages
from .maths import (
    Sample,
    build_distance_encoding,
    build_scatter_encoding,
    drawn_nudge,
    hard_labels,
    least_rows,
    move,
    nudge_purpose,
    sample_of_session,
)
from .params import LlfContext, LosslessFederated

_StartTask = messages.MeasureGroups | messages.StartFrom


class ColumnStartParty(PartyRole[LosslessFederated, _StartTask, Record, Record]):
    """Measures some rows to means of groups; keeps the means of clusters of them."""

    def reply(self, context: LlfContext, task: _StartTask, data: DataSource) -> Reply:
        """Return masked squared distances, or keep the start."""
        sample = sample_of_session(context.session)
        k = context.session.params.n_clusters
        if isinstance(task, messages.StartFrom):
            if len(task.labels) != sample.n_rows or task.labels.max() >= k:
                raise ProtocolFailed(
                    "The analyst names clusters of other rows to start from."
                )
            if np.bincount(task.labels, minlength=k).min() < least_rows(
                sample.n_rows, k
            ):
                raise ProtocolFailed(
                    "The analyst starts a cluster from the mean of too few rows."
                )
            rows = clusters.take(data, _own_numbers(context, sample))
            V = _means(scaler_of(context)(rows), task.labels, k)
            kept = messages.StartCentroids(centroids=V)
            return Reply(contribution=messages.StartKept(), remember=[kept])
        scale = scaler_of(context)
        asked = _check_first(context, data, scale)
        clusters.check_enough_rows(data, k)
        rows = clusters.take(data, _own_numbers(context, sample))
        V = _means(scale(rows), sample.groups, sample.n_groups)
        words = np.empty(sample, dtype=np.uint64)
        places = np.arange(sample.n_rows)
        unit = float(build_distance_encoding(context.session).unit)
        kernels.distance_units(rows, *scale.affine, V, unit, places, words)
        _hide(context, words, "groups", shifted=True)
        return Reply(
            contribution=messages.GroupDistances(words=words),
            notes=asked.notes,
            asks=asked.asks,
        )


def _check_first(
    context: LlfContext, data: DataSource, scale: Scaler
) -> dominance.DominanceQuestion:
    """Refuse rows outside the ranges; return what to ask before any is measured."""
    check_ranges(context, data)
    return dominance.check(context, data.columns, lambda: map(scale, data.batches()))


def _hide(context: LlfContext, words: WordArray, name: str, *, shifted: bool) -> None:
    """Mask a share (n, k) in place.

    shifted: whether the leader adds the same secret number to all distances of a row.
    """
    of = MaskedSum.from_context(context, context.session.slots, name)
    if shifted and of.members[0] == context.slot.name:
        # the same for all clusters of a row: what is nearest stays the same
        shift = group_stream(context, "row", f"shift/{of.label}").words(len(words))
        np.add(words, shift[:, None], out=words)
    mask(context, words, of, minimum_members=context.session.params.least_parties)


def _own_numbers(context: LlfContext, sample: Sample) -> IntArray:
    """Return the numbers of the party's own rows that are measured."""
    return context.recall(RowOrder).order[: sample.n_rows]


def _means(rows: FloatArray, labels: IntArray, k: int) -> FloatArray:
    """Return the mean (k, m) of the rows of each label."""
    sums = np.zeros((k, rows.shape[1]))
    np.add.at(sums, labels, rows)
    return sums / np.bincount(labels, minlength=k)[:, None]


_Task = messages.MeasureDistances | messages.Scatter


class ColumnsParty(PartyRole[LosslessFederated, _Task, Record, messages.GroupLabels]):
    """Measures rows against its own coordinates of the centroids, and moves these."""

    def reply(self, context: LlfContext, task: _Task, data: DataSource) -> Reply:
        """Return masked squared distances, or how the final clusters scatter.

        Rows are in the row group's secret order.
        """
        if isinstance(task, messages.Scatter):
            return reply_scatter(context, task, data)
        _check_number(context, task)
        scale = scaler_of(context)
        remembered: list[Record] = []
        asked = dominance.DominanceQuestion({}, "")
        if task.number == 1:
            start = context.session.params.start
            if start != "careful":  # whose stage has asked
                asked = _check_first(context, data, scale)
            V = equalise_coordinates(_find_start(context, data, scale), scale.step)
            remembered.append(messages.StartCentroids(centroids=V))
        else:
            V = _move_centroids(context, task, data, scale)
            told = hard_labels(task)
            remembered.append(digest_labels(told))
        words = _distances(context, data, scale, V)
        _hide(context, words, "distances", shifted=not context.session.params.fuzzy)
        own = messages.OwnCentroids(number=task.number, centroids=V)
        return Reply(
            contribution=messages.Distances(words=words),
            remember=[*remembered, own],
            notes=asked.notes,
            asks=asked.asks,
        )

    def foresee(self, context: LlfContext) -> Outcome | None:
        """Return labels and sizes once the analyst has asked how the clusters scatter."""
        rows = context.memory.get(messages.FinalRows)
        if rows is None:
            return None
        sizes = np.bincount(rows.labels, minlength=context.session.params.n_clusters)
        order = order_by_size(sizes)
        return Outcome(labels=rows.labels, cluster_sizes=sizes, order=order)

    def conclude(
        self, context: LlfContext, result: messages.GroupLabels, data: DataSource | None
    ) -> Outcome:
        """Return the labels in the order of this party's own rows."""
        order = context.recall(RowOrder)
        result.require({"n": len(order.order)})
        if result.figures.inertia is not None:
            check_told(context, result.labels)
        memberships = None
        if len(result.memberships):
            memberships = order.restore(result.memberships)
        own = context.recall(messages.OwnCentroids).centroids
        return Outcome(
            labels=order.restore(result.labels),
            cluster_sizes=result.cluster_sizes,
            centroids=scaler_of(context).undo(own),
            memberships=memberships,
            report={
                "n_updates": result.n_updates,
                "n_coinciding": result.n_coinciding,
            },
            figures=(result.figures,),
            order=order_by_size(result.cluster_sizes),
        )


def _find_start(context: LlfContext, data: DataSource, scale: Scaler) -> FloatArray:
    """Return this party's coordinates (k, m) of V(0)."""
    start = context.session.params.start
    if start == "careful":
        return context.recall(messages.StartCentroids).centroids
    if start == "random_rows":
        return _random_rows(context, data, scale)
    return without_messages(context, scale)


def _random_rows(context: LlfContext, data: DataSource, scale: Scaler) -> FloatArray:
    """Return this party's columns of k joint rows that the row group agrees on."""
    k = context.session.params.n_clusters
    clusters.check_enough_rows(data, k)
    order = context.recall(RowOrder).order
    places = group_stream(context, "row", "start").permutation(data.n_rows)[:k]
    return scale(clusters.take(data, order[places]))


def _check_number(context: LlfContext, asked: messages.MeasureDistances) -> None:
    """Refuse an update that does not follow: none begins again, or comes too late."""
    before = context.memory.get(messages.OwnCentroids)
    if asked.number != (1 if before is None else before.number + 1):
        raise ProtocolFailed("The analyst asks for an update out of order.")
    if asked.number > context.session.params.max_iter + 1:
        raise ProtocolFailed("The analyst asks for more updates than max_iter.")


def _move_centroids(
    context: LlfContext,
    asked: messages.MeasureDistances,
    data: DataSource,
    scale: Scaler,
) -> FloatArray:
    """Return this party's coordinates (k, m) after an update (equations 16 and 17)."""
    before = context.recall(messages.OwnCentroids)
    k = len(before.centroids)
    sums, weights = np.zeros_like(before.centroids), np.zeros(k)
    own = _degrees(context, asked)
    for rows, batch in batches(data):
        sums += own[rows].T @ scale(batch)
        weights += own[rows].sum(axis=0)
    # A public nudge would give the analyst known directions to measure every row by.
    purpose = nudge_purpose(context.slot.column, before.number)
    step = drawn_nudge(group_stream(context, "row", purpose), scale, k)
    return move(before.centroids, sums, weights, step, scale.step).centroids


def _degrees(context: LlfContext, asked: messages.MeasureDistances) -> FloatArray:
    """Return μ^λ (n, k) of this party's rows, in its own order; 0 and 1 for c-means."""
    params = context.session.params
    order, k = context.recall(RowOrder).order, params.n_clusters
    degrees = np.zeros((len(order), k))
    if params.fuzzy:
        asked.require({"n_memberships": len(order), "k": k})
        degrees[order] = asked.memberships**params.exponent
        return degrees
    asked.require({"n_labels": len(order)})
    if asked.labels.max() >= k:
        raise ProtocolFailed("The analyst named a cluster that there is not.")
    degrees[order, asked.labels] = 1.0
    return degrees


def _distances(
    context: LlfContext, data: DataSource, scale: Scaler, V: FloatArray
) -> WordArray:
    """Return squared distances (n, k) over own columns as ring elements."""
    order = context.recall(RowOrder).order
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    words = np.empty((data.n_rows, len(V)), dtype=np.uint64)
    code = build_distance_encoding(context.session)
    fixed = (*scale.affine, V, float(code.unit))
    for rows, batch in batches(data):
        kernels.distance_units(batch, *fixed, places[rows], words)
    if words.max(initial=0) > code.bound * code.unit:
        raise GuardRefused(
            "Distances exceed the bound that the parties agreed on: start the centroids "
            "within the data."
        )
    return words


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


def reply_scatter(
    context: LlfContext, asked: messages.Scatter, data: DataSource
) -> Reply:
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
