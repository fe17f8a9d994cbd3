"""Passes over a party's rows at the end: their labels, and sums of what they label."""

from __future__ import annotations

import numpy as np

from clustering_protocols.algorithms.row_kernels import bring_nearer
from clustering_protocols.common.errors import InvalidData
from clustering_protocols.contract import Placement
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.quality.block_sums import BlockSums, add_by_label, of_block
from clustering_protocols.records.arrays import FloatArray, IntArray

from . import kernels, messages
from .closing_sums import Around
from .features import Scaler, batches
from .rows_round import RowsRound


def final_rows(here: RowsRound, data: DataSource, V: FloatArray) -> messages.FinalRows:
    """Return the labels of this party's rows, and memberships where wanted."""
    if here.params.output == "memberships":
        return _with_memberships(here, data, V)
    return messages.FinalRows(
        labels=nearest(here, data, V), memberships=np.empty((0, len(V)))
    )


def nearest(here: RowsRound, data: DataSource, V: FloatArray) -> IntArray:
    """Return which centroid (k, F) is nearest to each row (n,)."""

    def of_batch(batch: FloatArray) -> IntArray:
        labels, away = np.empty(len(batch), np.int64), np.full(len(batch), np.inf)
        bring_nearer(batch, *here.scale.affine, V, 0, labels, away, 0.0)
        return labels

    return np.concatenate([*here.context.engine.map(of_batch, data.batches())])


def _with_memberships(
    here: RowsRound, data: DataSource, V: FloatArray
) -> messages.FinalRows:
    labels = np.empty(data.n_rows, dtype=np.int64)
    memberships = np.empty((data.n_rows, len(V)))
    for rows, batch in batches(data, len(V)):
        labels[rows], memberships[rows], _ = assign_rows(here, batch, V)
    return messages.FinalRows(labels=labels, memberships=memberships)


def assign_rows(
    here: RowsRound, batch: FloatArray, V: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return labels (n,), memberships and squared distances (n, k) to centroids."""
    exponent = 1.0 / (here.params.exponent - 1.0) if here.params.fuzzy else 0.0
    return _assign(here.scale, batch, V, exponent)


def place(scale: Scaler, data: DataSource, V: FloatArray) -> Placement:
    """Return new rows among the centroids (k, F), as the rows of a session are.

    Raises InvalidData if they have another number of columns.
    """
    if len(data.columns) != scale.offset.size:
        raise InvalidData(
            f"{len(data.columns)} columns; the session had {scale.offset.size}."
        )
    labels = np.empty(data.n_rows, dtype=np.int64)
    distances = np.empty((data.n_rows, len(V)))
    for rows, batch in batches(data, len(V)):
        labels[rows], _, squares = _assign(scale, batch, V, 0.0)
        distances[rows] = np.sqrt(squares)
    return Placement(labels=labels, distances=distances)


def _assign(
    scale: Scaler, batch: FloatArray, V: FloatArray, exponent: float
) -> tuple[IntArray, FloatArray, FloatArray]:
    labels = np.empty(len(batch), dtype=np.int64)
    U, D = np.empty((len(batch), len(V))), np.empty((len(batch), len(V)))
    kernels.assign(batch, *scale.affine, V, exponent, labels, U, D)
    return labels, U, D


def sums_of_labels(
    here: RowsRound, data: DataSource, labels: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return sums (k, F) and counts (k,) of this party's rows by label."""
    k = here.params.n_clusters
    sums = np.zeros((k, here.scale.offset.size))
    for rows, batch in batches(data):
        add_by_label(batch, *here.scale.affine, labels[rows], sums)
    return sums, np.bincount(labels, minlength=k).astype(np.float64)


def sums_around(
    here: RowsRound,
    data: DataSource,
    known: messages.Centroids,
    final: messages.FinalMeans,
    labels: IntArray,
) -> Around:
    """Return this party's share of the sums around the means; see :class:`Around`."""
    k, fuzzy = here.params.n_clusters, np.zeros(0)
    squares, distances, silhouettes = np.zeros(k), np.zeros(k), 0.0

    def of_batch(block: tuple[slice, FloatArray]) -> BlockSums:
        rows, batch = block
        return of_block(
            batch, here.scale.affine, final.means, labels[rows], final.counts
        )

    for own in here.context.engine.map(of_batch, batches(data)):
        squares += own.squares
        distances += own.distances
        silhouettes += own.silhouettes
    if here.params.fuzzy:
        fuzzy = _fuzzy_sums(here, data, known.centroids)
    return Around(
        sizes=np.bincount(labels, minlength=k).astype(np.float64),
        squares=squares,
        distances=distances,
        silhouettes=silhouettes,
        fuzzy=fuzzy,
    )


def _fuzzy_sums(here: RowsRound, data: DataSource, V: FloatArray) -> FloatArray:
    found = np.zeros(2)
    for _, batch in batches(data, len(V)):
        _, U, D = assign_rows(here, batch, V)
        degrees = np.square(U)
        found += (degrees * D).sum(), degrees.sum()
    return found
