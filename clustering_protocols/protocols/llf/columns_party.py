"""The party role for split columns: it sends distances and receives clusters.

A party never sends its coordinates of the centroids. For the quality figures, parties
also add up the scatter of the final clusters over their columns: the scatter of rows
around the mean m_c of their cluster, and the scatter of these means around the mean m
of all rows. Both sums together are Σ ‖x - m‖², whatever the labels are. If the analyst
has measured distances to the means m_c, the second sum follows from their differences,

    n_c ‖m_c - m_l‖² = Σ_{i in c} (‖x_i - m_l‖² - ‖x_i - m_c‖²),
    Σ_c n_c ‖m_c - m‖² = Σ_{c<l} n_c n_l ‖m_c - m_l‖² / n.

It has measured them if the last update changed no label. So parties send the scatter once
in a run: it discloses the total scatter of all rows and, if labels still changed, that of
these labels.
"""

from __future__ import annotations

import numpy as np

from clustering_protocols.algorithms.coincidence import equalise_coordinates
from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.contract import Outcome, PartyRole, Reply
from clustering_protocols.contract.published import order_by_size
from clustering_protocols.numerics.data_source import DataSource, iterate_batches
from clustering_protocols.numerics.moments import measure_moments
from clustering_protocols.quality.block_sums import add_by_label
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages import dominance
from clustering_protocols.shared_stages.alignment.digests import RowOrder
from clustering_protocols.shared_stages.masked_sums import MaskedSum, mask_share
from clustering_protocols.shared_stages.scaling import (
    Scaler,
    build_scaler,
    check_ranges,
    scaler_of,
)
from clustering_protocols.shared_stages.secrets import group_stream
from clustering_protocols.shared_stages.starts import clusters
from clustering_protocols.shared_stages.starts.messages import StartCentroids, StartKept
from clustering_protocols.shared_stages.starts.roles import compute_start_alone
from clustering_protocols.shared_stages.statistics.moments import recall_moments

from . import kernels, messages
from .maths import (
    Sample,
    build_distance_encoding,
    build_scatter_encoding,
    choose_session_sample,
    draw_perturbation,
    fewest_rows_per_start,
    move_centroids,
    perturbation_label,
)
from .params import LlfContext, LosslessFederated

_StartTask = messages.MeasureGroups | messages.StartFrom


class ColumnStartParty(PartyRole[LosslessFederated, _StartTask, Record, Record]):
    """Sends the distances of a sample to group means, and stores initial centroids."""

    def reply(self, context: LlfContext, task: _StartTask, data: DataSource) -> Reply:
        """Send masked squared distances, or remember the initial centroids."""
        sample = choose_session_sample(context.session)
        k = context.session.params.n_clusters
        if isinstance(task, messages.StartFrom):
            if len(task.labels) != sample.n_rows or task.labels.max() >= k:
                raise ProtocolFailed(
                    "The analyst names initial clusters that do not fit the sample."
                )
            sizes = np.bincount(task.labels, minlength=k)
            if sizes.min() < fewest_rows_per_start(sample.n_rows, k):
                raise ProtocolFailed(
                    "The analyst starts a cluster from the mean of too few rows."
                )
            rows = _sampled_rows(context, data, sample)
            V = _cluster_means(scaler_of(context)(rows), task.labels, k)
            start = StartCentroids(centroids=V)
            return Reply(contribution=StartKept(), remember=[start])
        scale, kept = _first_scaler(context, data)
        question = _check_before_upload(context, data, scale)
        clusters.check_enough_rows(data, k)
        rows = _sampled_rows(context, data, sample)
        V = _cluster_means(scale(rows), sample.groups, sample.n_groups)
        words = np.empty(sample, dtype=np.uint64)
        positions = np.arange(sample.n_rows)
        unit = float(build_distance_encoding(context.session).unit)
        kernels.distance_units(rows, *scale.affine, V, unit, positions, words)
        _mask_share(context, words, "groups", shifted=True)
        return Reply(
            contribution=messages.GroupDistances(words=words),
            remember=kept,
            notes=question.notes,
            asks=question.asks,
        )


def _first_scaler(context: LlfContext, data: DataSource) -> tuple[Scaler, list[Record]]:
    """Return the scaler for a party's first task, and what later ones recall of it."""
    if context.session.params.scaling != "standard":
        return scaler_of(context), []
    moments = recall_moments(context, lambda: measure_moments(data))
    return build_scaler(context.session, context.slot.column, moments), [moments]


def _check_before_upload(
    context: LlfContext, data: DataSource, scale: Scaler
) -> dominance.DominanceQuestion:
    """Check the ranges of values, and return a question if one field dominates."""
    check_ranges(context, data)
    return dominance.check_dominance(
        context, data.columns, lambda: map(scale, data.batches())
    )


def _mask_share(
    context: LlfContext, words: WordArray, name: str, *, shifted: bool
) -> None:
    """Mask this party's share (n, k) of a sum in place.

    shifted: whether the leader also adds a secret number to all distances of a row.
    """
    total = MaskedSum.from_context(context, context.session.slots, name)
    if shifted and total.members[0] == context.slot.name:
        # all distances of a row get the same shift, so the nearest cluster is unchanged
        shift = group_stream(context, "row", f"shift/{total.label}").words(len(words))
        np.add(words, shift[:, None], out=words)
    mask_share(
        context, words, total, minimum_members=context.session.params.least_parties
    )


def _sampled_rows(context: LlfContext, data: DataSource, sample: Sample) -> FloatArray:
    order = context.recall(RowOrder).order
    return clusters.take_rows(data, order[: sample.n_rows])


def _cluster_means(rows: FloatArray, labels: IntArray, k: int) -> FloatArray:
    sums = np.zeros((k, rows.shape[1]))
    np.add.at(sums, labels, rows)
    return sums / np.bincount(labels, minlength=k)[:, None]


_Task = messages.MeasureDistances | messages.Scatter


class ColumnsParty(PartyRole[LosslessFederated, _Task, Record, messages.GroupLabels]):
    """Sends distances to the centroids, and moves the centroids in its own columns."""

    def reply(self, context: LlfContext, task: _Task, data: DataSource) -> Reply:
        """Send masked distances in the secret row order, or the masked final scatter."""
        if isinstance(task, messages.Scatter):
            return _reply_scatter(context, task, data)
        before = context.memory.get(messages.OwnCentroids)
        if task.number != (1 if before is None else before.number + 1):
            raise ProtocolFailed("The analyst asks for an update out of order.")
        if task.number > context.session.params.max_iter + 1:
            raise ProtocolFailed("The analyst asks for more updates than max_iter.")
        question = dominance.DominanceQuestion({}, "")
        memory: list[Record] = []
        if before is None:
            scale, kept = _first_scaler(context, data)
            if context.session.params.start != "careful":  # else already checked
                question = _check_before_upload(context, data, scale)
            V = equalise_coordinates(_start_centroids(context, data, scale), scale.step)
            memory = [StartCentroids(centroids=V), *kept]
        else:
            scale = scaler_of(context)
            V = _move_centroids(context, task, data, before)
        words = _encode_distances(context, data, scale, V)
        _mask_share(
            context, words, "distances", shifted=not context.session.params.fuzzy
        )
        own = messages.OwnCentroids(number=task.number, centroids=V)
        return Reply(
            contribution=messages.Distances(words=words),
            remember=[*memory, own],
            notes=question.notes,
            asks=question.asks,
        )

    def early_outcome(self, context: LlfContext) -> Outcome | None:
        """Return labels and sizes, or None if the scatter has not been requested yet."""
        rows = context.memory.get(messages.FinalRows)
        if rows is None:
            return None
        sizes = np.bincount(rows.labels, minlength=context.session.params.n_clusters)
        order = order_by_size(sizes)
        return Outcome(labels=rows.labels, cluster_sizes=sizes, order=order)

    def conclude(
        self, context: LlfContext, result: messages.GroupLabels, data: DataSource | None
    ) -> Outcome:
        """Return the outcome, with labels in the order of the rows in the party's table."""
        order = context.recall(RowOrder)
        result.require({"n": len(order.order)})
        labels = order.restore_own_order(result.labels)
        rows = context.memory.get(messages.FinalRows)
        if rows is not None and not np.array_equal(rows.labels, labels):
            raise ProtocolFailed(
                "The analyst returns labels that differ from those it announced."
            )
        memberships = None
        if len(result.memberships):
            memberships = order.restore_own_order(result.memberships)
        own = context.recall(messages.OwnCentroids).centroids
        return Outcome(
            labels=labels,
            cluster_sizes=result.cluster_sizes,
            centroids=scaler_of(context).unscale(own),
            memberships=memberships,
            report={
                "n_updates": result.n_updates,
                "n_coinciding": result.n_coinciding,
            },
            figures=(result.figures,),
            order=order_by_size(result.cluster_sizes),
        )


def _start_centroids(
    context: LlfContext, data: DataSource, scale: Scaler
) -> FloatArray:
    start, k = context.session.params.start, context.session.params.n_clusters
    if start == "careful":
        return context.recall(StartCentroids).centroids
    if start != "random_rows":
        return compute_start_alone(context, scale)
    clusters.check_enough_rows(data, k)
    order = context.recall(RowOrder).order
    positions = group_stream(context, "row", "start").permutation(data.n_rows)[:k]
    return scale(clusters.take_rows(data, order[positions]))


def _move_centroids(
    context: LlfContext,
    task: messages.MeasureDistances,
    data: DataSource,
    before: messages.OwnCentroids,
) -> FloatArray:
    """Return this party's coordinates (k, m) after an update (equations 16 and 17)."""
    scale, k = scaler_of(context), len(before.centroids)
    sums, weights = np.zeros_like(before.centroids), np.zeros(k)
    degrees = _row_weights(context, task)
    for rows, batch in iterate_batches(data):
        sums += degrees[rows].T @ scale(batch)
        weights += degrees[rows].sum(axis=0)
    # If the analyst knew the perturbation, it would learn positions of rows along it.
    label = perturbation_label(context.slot.column, before.number)
    perturbation = draw_perturbation(group_stream(context, "row", label), scale, k)
    return move_centroids(before.centroids, sums, weights, perturbation, scale.step)[0]


def _row_weights(context: LlfContext, task: messages.MeasureDistances) -> FloatArray:
    """Return μ^λ (n, k) in the order of this party's table; 0 or 1 for hard c-means."""
    params = context.session.params
    order, k = context.recall(RowOrder).order, params.n_clusters
    degrees = np.zeros((len(order), k))
    if params.fuzzy:
        task.require({"n_memberships": len(order), "k": k})
        degrees[order] = task.memberships**params.exponent
        return degrees
    _check_labels(task, len(order), k)
    degrees[order, task.labels] = 1.0
    return degrees


def _check_labels(task: _Task, n_rows: int, k: int) -> None:
    task.require({"n_labels": n_rows})
    if task.labels.max() >= k:
        raise ProtocolFailed("The analyst named a cluster that does not exist.")


def _encode_distances(
    context: LlfContext, data: DataSource, scale: Scaler, V: FloatArray
) -> WordArray:
    """Return squared distances (n, k) over this party's columns, as ring elements."""
    order = context.recall(RowOrder).order
    positions = np.empty_like(order)
    positions[order] = np.arange(len(order))
    words = np.empty((data.n_rows, len(V)), dtype=np.uint64)
    encoding = build_distance_encoding(context.session)
    unit = float(encoding.unit)
    for rows, batch in iterate_batches(data):
        kernels.distance_units(batch, *scale.affine, V, unit, positions[rows], words)
    if words.max(initial=0) > encoding.bound * encoding.unit:
        raise GuardRefused(
            "Distances exceed the bound that the parties agreed on: start the centroids "
            "within the data."
        )
    return words


def _reply_scatter(
    context: LlfContext, task: messages.Scatter, data: DataSource
) -> Reply:
    """Send the masked Σ ‖x - m_c‖² and Σ n_c ‖m_c - m‖² over this party's columns."""
    params, scale = context.session.params, scaler_of(context)
    k = params.n_clusters
    _check_labels(task, data.n_rows, k)
    labels = np.empty(data.n_rows, dtype=np.int64)
    labels[context.recall(RowOrder).order] = task.labels
    sums, counts = np.zeros((k, scale.offset.size)), np.bincount(labels, minlength=k)
    for rows, batch in iterate_batches(data):
        add_by_label(batch, *scale.affine, labels[rows], sums)
    means = sums / np.maximum(counts, 1)[:, None]
    separations = np.square(means - sums.sum(axis=0) / len(labels)).sum(axis=1)
    inertia = 0.0
    for rows, batch in iterate_batches(data):
        inertia += float(np.square(scale(batch) - means[labels[rows]]).sum())
    scatter = np.array([inertia, float(counts @ separations)])
    words = build_scatter_encoding(context.session).encode(scatter)
    total = MaskedSum.from_context(context, context.session.slots, "scatter")
    mask_share(context, words, total, minimum_members=params.least_parties)
    final = messages.FinalRows(labels=labels, memberships=np.empty((0, k)))
    return Reply(contribution=messages.ScatterShare(words=words), remember=[final])
