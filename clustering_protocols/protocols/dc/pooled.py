"""The same clustering on the pooled features: what the fidelity of `dc` is measured by."""

from __future__ import annotations

import numpy as np

from clustering_protocols.algorithms.kmeans import draw_starts, kmeans
from clustering_protocols.algorithms.representatives import Representatives
from clustering_protocols.algorithms.spectral import spectral_embedding
from clustering_protocols.common.limits import graph_rows
from clustering_protocols.contract import Trace
from clustering_protocols.numerics.objectives import Objectives
from clustering_protocols.numerics.randomness import generator
from clustering_protocols.numerics.row_blocks import ArrayRows
from clustering_protocols.quality import pooled_objectives
from clustering_protocols.records.arrays import FloatArray, IntArray

from . import kernels, messages
from .factors import qr_r
from .params import DataCollaboration, DcSession


def labels(
    params: DataCollaboration, X: FloatArray, trace: Trace[DataCollaboration] | None
) -> IntArray:
    """Return labels of the same algorithm on X, with the same scaling and starts."""
    Z, some, starts = scale(params, X), None, _starts(trace)
    if params.samples_rows(len(X)):  # its own, among which no start of a trace is
        rng = generator(0, "dc", "pooled", "representatives")
        some = Representatives.draw(ArrayRows(Z), graph_rows(len(X)), rng)
        Z, starts = some.V, None
    if params.algorithm == "spectral":
        rng = generator(0, "dc", "pooled", "embedding")
        Z = spectral_embedding(Z, params.n_clusters, rng)
    if starts is None:
        rng = generator(0, "dc", "pooled")
        starts = draw_starts(Z, params.n_clusters, params.n_init, rng)
    found = kmeans(Z, starts, params.max_iter)
    return found.labels if some is None else some.spread(found).labels


def _starts(trace: Trace[DataCollaboration] | None) -> IntArray | None:
    """Return the rows from which a session's clustering started, if there is one."""
    summary = trace.summary_as(messages.Summary) if trace else None
    return None if summary is None else summary.starts


def scale(params: DataCollaboration, X: FloatArray) -> FloatArray:
    """Return X in the units that the parties agree on.

    Centring moves all distances alike, so it leaves nothing to do here. Local spreads
    are the parties' own; the pooled spread is what they stand for.
    """
    if params.scaling in {"none", "center"}:
        return X
    scaled: FloatArray = (X - X.mean(axis=0)) / kernels.spread_or_one(X.std(axis=0))
    return scaled


def objectives(
    params: DataCollaboration,
    X: FloatArray,
    clustered: tuple[IntArray, FloatArray | None],
    trace: Trace[DataCollaboration],
) -> Objectives | None:
    """Return the inertia of k-means; the rules leave out what parties leave out."""
    if params.algorithm != "kmeans":
        return None
    Z = scale(params, X)
    reduced = None
    if params.leaves_one_out and trace.session.layout.regular:
        reduced = _leave_dimensions_out(trace.session, Z)
    return pooled_objectives.of_kmeans(Z, clustered[0], params.n_clusters, reduced)


def _leave_dimensions_out(session: DcSession, Z: FloatArray) -> FloatArray:
    """Return rows without each party's own direction of least variance."""
    layout, reduced = session.layout, np.empty_like(Z)
    begin = 0
    for row in range(layout.n_row_groups):
        end, first = begin + session.n_rows(layout.row_group(row)[0]), 0
        for slot in layout.row_group(row):
            last = first + session.member(slot).n_columns
            own = Z[begin:end, first:last]
            mean = own.mean(axis=0)
            axes, rank = kernels.principal_axes(qr_r(own - mean), len(own))
            F = axes[:, : kernels.reduced_width(rank, len(own))]
            reduced[begin:end, first:last] = mean + (own - mean) @ F @ F.T
            first = last
        begin = end
    return reduced
