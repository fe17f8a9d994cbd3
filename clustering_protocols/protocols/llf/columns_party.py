"""The party role for split columns: distances out, clusters in, centroids stay home."""

from __future__ import annotations

from hashlib import sha256

import numpy as np

from clustering_protocols.arrays import FloatArray, WordArray
from clustering_protocols.contract import (
    Outcome,
    PartyContext,
    PartyRole,
    Reply,
    SessionContext,
)
from clustering_protocols.data import DataSource
from clustering_protocols.errors import GuardRefused, ProtocolFailed
from clustering_protocols.preparation.alignment import RowOrder
from clustering_protocols.preparation.secrets import group_stream
from clustering_protocols.preparation.sums import MaskedSum, mask
from clustering_protocols.records import Record
from clustering_protocols.secrecy.fixed_point import FixedPoint

from . import kernels, messages, starts
from .centroids import nudge
from .features import Scaler, check_ranges, contiguous, params_of, scaler, scaler_of


class ColumnsParty(PartyRole):
    """Measures rows against its own coordinates of the centroids, and moves these."""

    def reply(self, context: PartyContext, task: Record, data: DataSource) -> Reply:
        """Return masked squared distances, rows in the row group's secret order."""
        asked = messages.Measure.narrow(task)
        scale = scaler_of(context)
        remembered: list[Record] = []
        if asked.number == 1:
            check_ranges(scale, data)
            if params_of(context.session).start(rows_split=False) == "random_rows":
                V = starts.random_rows(context, data, scale)
            else:
                V = starts.without_messages(context, scale)
            remembered.append(messages.StartCentroids(centroids=V))
        else:
            V = _moved(context, asked, data, scale)
        words = _distances(context, data, scale, V)
        inputs = _inputs(context, asked)
        _hide(context, words, inputs)
        own = messages.OwnCentroids(number=asked.number, centroids=V)
        return Reply(
            contribution=messages.Distances(words=words),
            remember=[*remembered, own],
            inputs=inputs,
        )

    def conclude(
        self, context: PartyContext, result: Record, data: DataSource | None
    ) -> Outcome:
        """Return the labels in the order of this party's own rows."""
        grouped = messages.Grouped.narrow(result)
        order = context.recall(RowOrder).order
        grouped.require({"n": len(order)})
        labels = np.empty_like(grouped.labels)
        labels[order] = grouped.labels
        memberships = None
        if len(grouped.memberships):
            memberships = np.empty_like(grouped.memberships)
            memberships[order] = grouped.memberships
        own = context.recall(messages.OwnCentroids).centroids
        return Outcome(
            labels=labels,
            cluster_sizes=grouped.cluster_sizes,
            centroids=scaler_of(context).undo(own),
            memberships=memberships,
            report={"n_updates": grouped.n_updates},
        )


def encoding(session: SessionContext) -> FixedPoint:
    """Return how squared distances over all columns stand as ring elements.

    A centroid is a mean of rows, so no distance exceeds twice the limit of a feature.
    """
    limits = [
        scaler(session, column, None).limit
        for column in range(session.layout.n_column_groups)
    ]
    return FixedPoint.of(np.square(2.01 * np.concatenate(limits)).sum())


def _moved(
    context: PartyContext, asked: messages.Measure, data: DataSource, scale: Scaler
) -> FloatArray:
    """Return this party's coordinates (k, m) after an update (equations 16 and 17)."""
    before = context.recall(messages.OwnCentroids)
    if asked.number != before.number + 1:
        raise ProtocolFailed("The analyst asks for an update out of order.")
    sums = np.zeros_like(before.centroids)
    weights = np.zeros(len(sums))
    own = _degrees(context, asked)
    begin = 0
    for batch in data.batches():
        degrees = own[begin : begin + len(batch)]
        sums += degrees.T @ scale(batch)
        weights += degrees.sum(axis=0)
        begin += len(batch)
    filled = (weights > 0)[:, None]
    kept = before.centroids + nudge(
        context.session, context.slot.column, before.number, scale
    )
    return np.where(filled, sums / np.where(filled, weights[:, None], 1.0), kept)


def _degrees(context: PartyContext, asked: messages.Measure) -> FloatArray:
    """Return μ^λ (n, k) of this party's rows, in its own order; 0 and 1 for c-means."""
    params = params_of(context.session)
    order, k = context.recall(RowOrder).order, params.n_clusters
    degrees = np.zeros((len(order), k))
    if params.fuzzy:
        asked.require({"n_memberships": len(order), "k": k})
        degrees[order] = asked.memberships**params.fuzzifier
        return degrees
    asked.require({"n_labels": len(order)})
    if asked.labels.max() >= k:
        raise ProtocolFailed("The analyst named a cluster that there is not.")
    degrees[order, asked.labels] = 1.0
    return degrees


def _distances(
    context: PartyContext, data: DataSource, scale: Scaler, V: FloatArray
) -> WordArray:
    """Return squared distances (n, k) over own columns as ring elements."""
    order = context.recall(RowOrder).order
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    words = np.empty((data.n_rows, len(V)), dtype=np.uint64)
    code = encoding(context.session)
    fixed = (scale.offset, scale.inverse, np.ascontiguousarray(V), float(code.unit))
    begin = 0
    for batch in contiguous(data):
        kernels.distance_units(batch, *fixed, places[begin : begin + len(batch)], words)
        begin += len(batch)
    if words.max(initial=0) > code.bound * code.unit:
        raise GuardRefused(
            "Distances exceed the bound that the parties agreed on: start the centroids "
            "within the data."
        )
    return words


def _inputs(context: PartyContext, asked: messages.Measure) -> bytes:
    """Return a digest of the clusters from which the centroids follow."""
    clusters = asked.memberships if params_of(context.session).fuzzy else asked.labels
    return sha256(clusters.tobytes()).digest()


def _hide(context: PartyContext, words: WordArray, inputs: bytes) -> None:
    """Mask a share in place, as the terms say."""
    params = params_of(context.session)
    if not params.masked:
        return
    of = MaskedSum.here(context, context.session.slots, "distances")
    if not params.fuzzy and of.members[0] == context.slot.name:
        # the same for all clusters of a row: what is nearest stays the same
        shift = group_stream(context, "row", f"shift/{of.label}").words(len(words))
        np.add(words, shift[:, None], out=words)
    mask(context, words, of, inputs=inputs, minimum_members=params.least_parties)
