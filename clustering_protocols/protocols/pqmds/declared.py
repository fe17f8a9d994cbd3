"""Codes that know of the rows nothing but the rows: scale and codebooks as declared.

Under differential privacy a person's row may move that person's codes alone. A codebook,
a mean, a spread or a range that is taken from the rows moves everybody's. So features are
clipped to declared ranges and measured in units of these, and codebooks are those of
rows that are drawn evenly from the ranges, by the party's own stream.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from clustering_protocols.algorithms.kmeans import nearest
from clustering_protocols.arrays import FloatArray
from clustering_protocols.errors import ProtocolFailed
from clustering_protocols.preparation.statistics.ranges import Range
from clustering_protocols.randomness import KeyedStream

from . import kernels
from .kernels import Encoded
from .params import PqmdsSession, ProductQuantisation
from .subspaces import cut

_PER_CENTRE: Final = 16  # rows that are drawn for each centre of a codebook


class Ranges(NamedTuple):
    """Smallest and largest values (m,) of a party's features."""

    low: FloatArray
    high: FloatArray


def ranges(session: PqmdsSession, slot: str) -> Ranges:
    """Return what the terms declare of a slot's features.

    Raises
    ------
    ProtocolFailed
        If they declare another number of features than the slot has, or none.
    """
    declared = session.params.privacy.ranges
    width = session.member(slot).n_columns
    column = session.layout.slot(slot).column
    features = (declared,) * width if isinstance(declared, Range) else None
    if isinstance(declared, tuple):
        features = declared[column]
    if features is None or len(features) != width:
        raise ProtocolFailed(
            f"privacy.ranges declares {len(features or ())} features for {slot!r}, "
            f"which has {width}."
        )
    low = np.array([feature.minimum for feature in features])
    return Ranges(low, np.array([feature.maximum for feature in features]))


def encode(
    params: ProductQuantisation, given: Ranges, X: FloatArray, stream: KeyedStream
) -> Encoded:
    """Return the codes of rows X (n, m), clipped to the ranges.

    A row's codes depend on ranges, stream and that row, and so does nothing else that is
    returned.
    """
    units = _scaled(params, given, np.clip(X, given.low, given.high))
    low = _scaled(params, given, given.low)
    high = _scaled(params, given, given.high)
    subspaces = cut(X.shape[1], params.sub_dim)
    codes = np.empty((len(X), len(subspaces)))
    bounds = np.empty((len(subspaces), 2))
    sizes = np.empty(len(subspaces), dtype=np.int64)
    drawn_rows = _PER_CENTRE * params.codebook_size
    for number, features in enumerate(subspaces):
        width = features.stop - features.start
        even = stream.uniform(drawn_rows * width).reshape(drawn_rows, width)
        even = low[features] + even * (high[features] - low[features])
        book = kernels.codebook(params, even, stream)
        cells = nearest(units[:, features], book.centres)
        codes[:, number] = book.coordinates[cells]
        bounds[number] = book.coordinates.min(), book.coordinates.max()
        sizes[number] = len(book.centres)
    return Encoded(codes=codes, sizes=sizes, bounds=bounds)


def _scaled(params: ProductQuantisation, given: Ranges, X: FloatArray) -> FloatArray:
    """Return rows in units of the spread that even values of the ranges have."""
    if params.scaling == "none":
        return X
    middle, spread = (
        (given.low + given.high) / 2,
        (given.high - given.low) / np.sqrt(12),
    )
    units: FloatArray = (X - middle) / spread
    return units
