"""A party's codes: scaled features, codebooks of subspaces, coordinates of centres.

Wang, Zhang and Chen number steps instead of equations. :func:`.params.subspaces_of`
decomposes the features, :func:`quantise` is k-means of a subspace, :func:`coordinates`
is one-dimensional MDS of its centres (the paper's Algorithm 2),
:func:`scale_to_unit_range` normalises the coordinates, and :func:`encode` returns the
codes. The server's k-means is in :mod:`.analyst`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from clustering_protocols.algorithms.lloyd import (
    ScaledRows,
    Units,
    lloyd,
    nearest_centroids,
)
from clustering_protocols.numerics.blocks import ONE_THREAD
from clustering_protocols.numerics.kernels import add_in_order, in_c
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.numerics.row_blocks import ArrayRows
from clustering_protocols.records.arrays import FloatArray, IntArray

from .params import ProductQuantisation, subspaces_of

MAX_ITERATIONS: Final = 25
_ROUNDING: Final = 16 * float(np.finfo(np.float64).eps)


class Centres(NamedTuple):
    """The centres of a subspace.

    units: the units in which the rows were added up.
    V: float64 (size, d); the centres minus the units' offset.
    counts: int64 (size,); the number of rows of each centre.
    """

    units: Units
    V: FloatArray
    counts: IntArray

    def nearest(self, rows: FloatArray) -> IntArray:
        """Return the number (n,) of the centre that is nearest to each row (n, d)."""
        return nearest_centroids(self.units, self.V, rows).labels


def quantise(rows: FloatArray, size: int, stream: KeyedStream) -> Centres:
    """Return at most ``size`` centres of rows (n, d).

    If there are fewer than ``size`` distinct rows, they are the centres. Otherwise, the
    centres result from k-means++ and at most :data:`MAX_ITERATIONS` iterations of
    Lloyd's algorithm. Centres without rows are omitted.

    stream: determines the initial centres.
    """
    scaled = ScaledRows.scale(ArrayRows(rows), ONE_THREAD, size)
    starts: IntArray = np.zeros(size, dtype=np.int64)
    _draw_starts(rows.T, stream.uniform(size), starts)
    V = np.unique(scaled.take(starts), axis=0)
    if len(V) == size:
        V = lloyd(scaled, V, MAX_ITERATIONS).V
    labels = nearest_centroids(scaled.units, V, rows).labels
    counts = np.bincount(labels, minlength=len(V))
    return Centres(scaled.units, V[counts > 0], counts[counts > 0])


@in_c("starts")
def _draw_starts(features: FloatArray, draws: FloatArray, starts: IntArray) -> None:
    """Write to ``starts`` the numbers of the rows that k-means++ selects by ``draws``.

    Once every distinct row has been selected, the first row is selected repeatedly.
    """
    near = np.ones(features.shape[1])
    for start, draw in enumerate(draws):
        cumulative = np.cumsum(near)
        position = int(np.searchsorted(cumulative, draw * cumulative[-1]))
        row = min(position, len(near) - 1)
        starts[start] = row
        difference = features - features[:, row, None]
        squares = add_in_order(np.zeros(len(near)), difference * difference)
        near = squares if start == 0 else np.minimum(near, squares)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EncodedRows:
    """The codes of a party's rows.

    codes: float64 (n, s); the coordinates of the centre of each row, subspace by
        subspace.
    sizes: int64 (number of subspaces,); the number of centres of each subspace.
    bounds: float64 (s, 2); minimum and maximum of each coordinate over the centres of
        its subspace.
    """

    codes: FloatArray = field(repr=False)
    sizes: IntArray
    bounds: FloatArray = field(repr=False)


class Codebook(NamedTuple):
    """Centres of a subspace, and their coordinates (size, c)."""

    centres: Centres
    coordinates: FloatArray

    @property
    def bounds(self) -> FloatArray:
        """Return the minimum and maximum (c, 2) of each coordinate.

        A coordinate in which all centres are equal gets the bounds of the last
        coordinate before it in which centres differ, so that noise hides both equally
        well.
        """
        low, high = self.coordinates.min(axis=0), self.coordinates.max(axis=0)
        last = np.maximum.accumulate(np.where(high > low, np.arange(len(low)), 0))
        return np.column_stack([low[last], high[last]])


def encode(
    params: ProductQuantisation,
    training: FloatArray,
    rows: FloatArray,
    stream: KeyedStream,
) -> EncodedRows:
    """Return the codes of scaled rows (n, m), by codebooks of training rows (t, m).

    stream: determines the initial centres of the codebooks.
    """
    books, codes = [], []
    for features, width in subspaces_of(params, rows.shape[1]):
        book = build_codebook(params, training[:, features], stream, width)
        books.append(book)
        codes.append(book.coordinates[book.centres.nearest(rows[:, features])])
    return EncodedRows(
        codes=np.hstack(codes),
        sizes=np.array([len(book.coordinates) for book in books]),
        bounds=np.concatenate([book.bounds for book in books]),
    )


def build_codebook(
    params: ProductQuantisation, rows: FloatArray, stream: KeyedStream, width: int
) -> Codebook:
    """Return the codebook for the scaled rows (n, d) of one subspace.

    width: number of coordinates that are sent.
    """
    centres = quantise(rows, params.codebook_size, stream)
    counts = centres.counts.astype(np.float64)
    weights = counts if params.weights == "rows" else np.ones(len(counts))
    Z = coordinates(centres.V, weights, width)
    return Codebook(
        centres, scale_to_unit_range(Z) if params.normalise == "minmax" else Z
    )


def scale_rows(
    params: ProductQuantisation, X: FloatArray, units: FloatArray | None = None
) -> FloatArray:
    """Return rows (n, m) in the units in which distances are measured."""
    if params.scaling == "none":
        return X
    spread = X.std(axis=0)
    divisor = np.where(spread > 0, spread, 1.0) if units is None else units
    Z: FloatArray = (X - X.mean(axis=0)) / divisor
    return Z


def coordinates(centres: FloatArray, weights: FloatArray, width: int) -> FloatArray:
    """Return the classical scaling (size, width) of centres (size, d).

    The principal coordinates √λ_i v_i of the doubly centred squared distances are the
    projections of the centred centres on their right singular vectors, so that no
    matrix of size × size is needed. Signs are chosen such that each vector's largest
    entry is positive. Distances between centres are preserved if the width is at least
    the rank; further coordinates are zero.

    weights: float64 (size,); a centre of weight w counts as w equal points.
    """
    centred = centres - np.average(centres, axis=0, weights=weights)
    spread = np.sqrt(weights)[:, np.newaxis] * centred
    _, values, axes = np.linalg.svd(spread, full_matrices=False)
    rounding = _ROUNDING * np.abs(centres).max() * np.sqrt(weights.sum())
    axes = axes[:width][values[:width] > rounding]
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    Z = np.zeros((len(centres), width))
    Z[:, : len(axes)] = centred @ (signs[:, np.newaxis] * axes).T
    return Z


def scale_to_unit_range(Z: FloatArray) -> FloatArray:
    """Return coordinates (size, c), shifted and scaled to [0, 1].

    All coordinates of a subspace are divided by the same factor, the range of the
    widest coordinate.
    """
    shifted: FloatArray = Z - Z.min(axis=0)
    largest = shifted.max()
    if largest > 0:
        shifted /= largest
    return shifted
