"""Codes that know of the rows nothing but the rows: scale and codebooks as declared.

Under differential privacy a person's row may move that person's codes alone. A codebook,
a mean, a spread or a range that is taken from the rows moves everybody's. So features are
clipped to the ranges of the data dictionary and measured in units of these, and codebooks
are those of rows that are drawn evenly from the ranges, by the party's own stream.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clustering_protocols.algorithms.kmeans import nearest
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.terms.preparation import Ranges

from . import kernels, subspaces
from .kernels import EncodedRows
from .params import ProductQuantisation

_PER_CENTRE: Final = 16  # rows that are drawn for each centre of a codebook


def spread(given: Ranges) -> FloatArray:
    """Return the spreads (m,) of even values of the ranges."""
    even: FloatArray = (given.high - given.low) / np.sqrt(12)
    return even


def encode(
    params: ProductQuantisation,
    given: Ranges,
    X: FloatArray,
    stream: KeyedStream,
    units: FloatArray | None = None,
) -> EncodedRows:
    """Return the codes of rows X (n, m), clipped to the ranges.

    A row's codes depend on ranges, units, stream and that row, and so does nothing else
    that is returned. ``units`` (m,) stand for the spreads of the ranges, where the terms
    prepare them.
    """
    divisor = spread(given) if units is None else units
    low, high, rows = (
        _scale_rows(params, given, divisor, values)
        for values in (given.low, given.high, np.clip(X, given.low, given.high))
    )
    drawn_rows = _PER_CENTRE * params.codebook_size
    books, codes = [], []
    for features, width in subspaces.of(params, X.shape[1]):
        size = features.stop - features.start
        even = stream.uniform(drawn_rows * size).reshape(drawn_rows, size)
        even = low[features] + even * (high[features] - low[features])
        book = kernels.codebook(params, even, stream, width)
        books.append(book)
        codes.append(book.coordinates[nearest(rows[:, features], book.centres)])
    return EncodedRows.of(codes, books)


def _scale_rows(
    params: ProductQuantisation, given: Ranges, divisor: FloatArray, X: FloatArray
) -> FloatArray:
    """Return rows in units of the spread that even values of the ranges have."""
    if params.scaling == "none":
        return X
    return (X - (given.low + given.high) / 2) / divisor
