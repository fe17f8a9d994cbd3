"""The party role for split columns: distances out, clusters in, centroids stay home."""

from __future__ import annotations

import numpy as np

from clustering_protocols.algorithms.coincidence import equalise_coordinates
from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.contract import Outcome, PartyRole, Reply
from clustering_protocols.contract.cluster_order import order_by_size
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import FloatArray, WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages import dominance
from clustering_protocols.shared_stages.alignment.digests import RowOrder
from clustering_protocols.shared_stages.secrets import group_stream

from . import columns_scatter, kernels, messages, starts
from .centroids import drawn_nudge, move, nudge_purpose
from .column_distances import build_distance_encoding, check_first, hide
from .features import Scaler, batches, scaler_of
from .params import LlfContext, LosslessFederated

_Task = messages.MeasureDistances | messages.Scatter


class ColumnsParty(PartyRole[LosslessFederated, _Task, Record, messages.GroupLabels]):
    """Measures rows against its own coordinates of the centroids, and moves these."""

    def reply(self, context: LlfContext, task: _Task, data: DataSource) -> Reply:
        """Return masked squared distances, or how the final clusters scatter.

        Rows are in the row group's secret order.
        """
        if isinstance(task, messages.Scatter):
            return columns_scatter.reply(context, task, data)
        _check_number(context, task)
        scale = scaler_of(context)
        remembered: list[Record] = []
        asked = dominance.DominanceQuestion({}, "")
        if task.number == 1:
            start = context.session.params.start
            if start != "careful":  # whose stage has asked
                asked = check_first(context, data, scale)
            V = equalise_coordinates(_find_start(context, data, scale), scale.step)
            remembered.append(messages.StartCentroids(centroids=V))
        else:
            V = _move_centroids(context, task, data, scale)
            told = columns_scatter.hard_labels(task)
            remembered.append(columns_scatter.digest_labels(told))
        words = _distances(context, data, scale, V)
        hide(context, words, "distances", shifted=not context.session.params.fuzzy)
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
            columns_scatter.check_told(context, result.labels)
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
        return starts.random_rows(context, data, scale)
    return starts.without_messages(context, scale)


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
