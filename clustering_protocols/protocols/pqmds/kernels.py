"""A party's codes: scaling, a codebook per subspace, coordinates of its centres."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import FloatArray, IntArray

from . import lloyd, one_dimension, subspaces
from .lloyd import QuantisedRows
from .params import ProductQuantisation

_ROUNDING: Final = 16 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EncodedRows:
    """What becomes of a party's rows.

    codes: float64 (n, s); the coordinates of each row's centres, subspace by subspace.
    sizes: int64 array; centres of each subspace.
    bounds: float64 (s, 2); least and largest value of each coordinate among its
        subspace's centres.
    """

    codes: FloatArray = field(repr=False)
    sizes: IntArray
    bounds: FloatArray = field(repr=False)

    @classmethod
    def of(cls, codes: Sequence[FloatArray], books: Sequence[Codebook]) -> EncodedRows:
        """Return the codes (n, c) of each subspace, and its codebook, side by side."""
        return cls(
            codes=np.hstack(codes),
            sizes=np.array([len(book.centres) for book in books]),
            bounds=np.concatenate([book.bounds for book in books]),
        )


class Codebook(NamedTuple):
    """Centres (size, d), their coordinates (size, c), and each row's centre (n,)."""

    centres: FloatArray
    coordinates: FloatArray
    codes: IntArray

    @property
    def bounds(self) -> FloatArray:
        """Return least and largest value (c, 2) of each coordinate.

        A coordinate in which no centres differ has those of the last before it in which
        some do: noise then hides it as well as that one.
        """
        low, high = self.coordinates.min(axis=0), self.coordinates.max(axis=0)
        last = np.maximum.accumulate(np.where(high > low, np.arange(len(low)), 0))
        return np.column_stack([low[last], high[last]])


def encode(
    params: ProductQuantisation,
    X: FloatArray,
    stream: KeyedStream,
    units: FloatArray | None = None,
) -> EncodedRows:
    """Return the codes of rows X (n, m); starts of codebooks come from the stream.

    ``units`` (m,) stand for the features' own spreads, where the terms prepare them.
    """
    Z = scale_rows(params, X, units)
    books = [
        codebook(params, Z[:, features], stream, width)
        for features, width in subspaces.of(params, X.shape[1])
    ]
    return EncodedRows.of([book.coordinates[book.codes] for book in books], books)


def codebook(
    params: ProductQuantisation, rows: FloatArray, stream: KeyedStream, width: int
) -> Codebook:
    """Return the codebook of rows (n, d) of one subspace, in units of distances.

    ``width`` is the number of its coordinates that are sent.
    """
    found = quantise(rows, params.codebook_size, stream)
    rows_of = np.bincount(found.codes, minlength=len(found.centres))
    weights = rows_of if params.weights == "rows" else np.ones(len(rows_of))
    placed = coordinates(found.centres, weights.astype(np.float64), width)
    if params.normalise == "minmax":
        placed = unit_range(placed)
    return Codebook(found.centres, placed, found.codes)


def scale_rows(
    params: ProductQuantisation, X: FloatArray, units: FloatArray | None = None
) -> FloatArray:
    """Return rows (n, m) in the units in which distances are measured."""
    if params.scaling == "none":
        return X
    spread = X.std(axis=0)
    divisor = np.where(spread > 0, spread, 1.0) if units is None else units
    in_units: FloatArray = (X - X.mean(axis=0)) / divisor
    return in_units


def quantise(rows: FloatArray, size: int, stream: KeyedStream) -> QuantisedRows:
    """Return a codebook of at most ``size`` centres for one subspace, and the codes."""
    if rows.shape[1] > 1:
        return lloyd.quantise(rows, size, stream.uniform(size))
    values, counts = np.unique(rows, return_counts=True)
    weights = counts.astype(np.float64)
    begins = one_dimension.optimal_intervals(values, weights, size)[:-1]
    means = np.add.reduceat(weights * values, begins) / np.add.reduceat(weights, begins)
    codes = np.searchsorted(values[begins[1:]], rows[:, 0], side="right")
    return QuantisedRows(means[:, np.newaxis], codes)


def coordinates(centres: FloatArray, weights: FloatArray, width: int) -> FloatArray:
    """Return the classical scaling (size, width) of centres (size, d).

    The principal coordinates √λ_i v_i of the doubly centred squared distances are the
    projections of the centred centres on their right singular vectors, found without a
    matrix of size × size. Each vector's largest entry is made positive. A centre of
    weight w (size,) counts as w points in one place. All that vary keep the distances
    between centres; those beyond are zero.
    """
    centred = centres - np.average(centres, axis=0, weights=weights)
    spread = np.sqrt(weights)[:, np.newaxis] * centred
    _, values, axes = np.linalg.svd(spread, full_matrices=False)
    rounding = _ROUNDING * np.abs(centres).max() * np.sqrt(weights.sum())
    kept = axes[:width][values[:width] > rounding]
    signs = np.sign(kept[np.arange(len(kept)), np.abs(kept).argmax(axis=1)])
    placed = np.zeros((len(centres), width))
    placed[:, : len(kept)] = centred @ (signs[:, np.newaxis] * kept).T
    return placed


def unit_range(placed: FloatArray) -> FloatArray:
    """Return coordinates (size, c) moved and scaled to [0, 1]; 0 where they are equal.

    One factor for all of a subspace: the widest runs to 1.
    """
    moved: FloatArray = placed - placed.min(axis=0)
    largest = moved.max()
    if largest > 0:
        moved /= largest
    return moved
