"""A party's codes: scaling, a codebook per subspace, one coordinate per centre."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from clustering_protocols.arrays import FloatArray, IntArray
from clustering_protocols.randomness import KeyedStream

from . import lloyd, one_dimension
from .lloyd import Quantised
from .params import ProductQuantisation
from .subspaces import cut


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Encoded:
    """What becomes of a party's rows.

    Attributes
    ----------
    codes : float64 array of shape (n, s)
    sizes : int64 array of shape (s,)
        Centres of each subspace.
    bounds : float64 array of shape (s, 2)
        Least and largest coordinate of each subspace's centres.
    """

    codes: FloatArray = field(repr=False)
    sizes: IntArray
    bounds: FloatArray = field(repr=False)


class Codebook(NamedTuple):
    """Centres (size, d), their coordinates (size,), and whose centre is each row's (n,)."""

    centres: FloatArray
    coordinates: FloatArray
    codes: IntArray


def encode(
    params: ProductQuantisation,
    X: FloatArray,
    stream: KeyedStream,
    units: FloatArray | None = None,
) -> Encoded:
    """Return the codes of rows X (n, m); starts of codebooks come from the stream.

    ``units`` (m,) stand for the features' own spreads, where the terms prepare them.
    """
    subspaces = cut(X.shape[1], params.sub_dim)
    Z = scaled(params, X, units)
    books = [codebook(params, Z[:, f], stream) for f in subspaces]
    return Encoded(
        codes=np.stack([book.coordinates[book.codes] for book in books], axis=1),
        sizes=np.array([len(book.centres) for book in books]),
        bounds=np.array(
            [(book.coordinates.min(), book.coordinates.max()) for book in books]
        ),
    )


def codebook(
    params: ProductQuantisation, rows: FloatArray, stream: KeyedStream
) -> Codebook:
    """Return the codebook of rows (n, d) of one subspace, in units of distances."""
    found = quantise(rows, params.codebook_size, stream)
    rows_of = np.bincount(found.codes, minlength=len(found.centres))
    weights = rows_of if params.weights == "rows" else np.ones(len(rows_of))
    coordinates = first_coordinate(found.centres, weights.astype(np.float64))
    if params.normalise == "minmax":
        coordinates = unit_range(coordinates)
    return Codebook(found.centres, coordinates, found.codes)


def scaled(
    params: ProductQuantisation, X: FloatArray, units: FloatArray | None = None
) -> FloatArray:
    """Return rows (n, m) in the units in which distances are measured."""
    if params.scaling == "none":
        return X
    spread = X.std(axis=0)
    divisor = np.where(spread > 0, spread, 1.0) if units is None else units
    in_units: FloatArray = (X - X.mean(axis=0)) / divisor
    return in_units


def quantise(rows: FloatArray, size: int, stream: KeyedStream) -> Quantised:
    """Return a codebook of at most ``size`` centres for one subspace, and the codes."""
    if rows.shape[1] > 1:
        return lloyd.quantise(rows, size, stream.uniform(size))
    values, counts = np.unique(rows, return_counts=True)
    weights = counts.astype(np.float64)
    begins = one_dimension.optimal_intervals(values, weights, size)[:-1]
    means = np.add.reduceat(weights * values, begins) / np.add.reduceat(weights, begins)
    codes = np.searchsorted(values[begins[1:]], rows[:, 0], side="right")
    return Quantised(means[:, np.newaxis], codes)


def first_coordinate(centres: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the classical one-dimensional scaling (size,) of centres (size, d).

    The first principal coordinate √λ₁ v₁ of the doubly centred squared distances is the
    projection of the centred centres on their first right singular vector, found without
    a matrix of size × size. The vector's largest entry is made positive. A centre of
    weight w (size,) counts as w points in one place.
    """
    centred = centres - np.average(centres, axis=0, weights=weights)
    spread = np.sqrt(weights)[:, np.newaxis] * centred
    axis = np.linalg.svd(spread, full_matrices=False)[2][0]
    projected: FloatArray = centred @ (axis * np.sign(axis[np.argmax(np.abs(axis))]))
    return projected


def unit_range(coordinates: FloatArray) -> FloatArray:
    """Return coordinates moved and scaled to [0, 1]; all 0 where they are equal."""
    moved: FloatArray = coordinates - coordinates.min()
    largest = moved.max()
    if largest > 0:
        moved /= largest
    return moved
