"""Anchor data X^anc: artificial rows that only the parties of a column group know."""

from __future__ import annotations

import numpy as np

from clustering_protocols.numerics.moments import Moments
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.terms.preparation import Ranges

from .params import DataCollaboration

_UNIFORM_SPREAD = 12.0**-0.5  # standard deviation of a uniform number of (0, 1)


def draw(
    params: DataCollaboration, n_rows: int, moments: Moments, stream: KeyedStream
) -> FloatArray:
    """Draw anchors X^anc (n_rows, m) in the units of the data, from pooled moments.

    gaussian: normal numbers, made orthogonal, so that columns have exactly the pooled
        mean and no correlation (this needs n_rows > m). Every rotation of these numbers
        has the same distribution, so a blind source separation of their projections
        gains nothing.
    rotated: standardised uniform numbers multiplied by a secret Haar-random rotation,
        so that features are not the independent components.

    All columns of anchors have equal standard deviations in the units in which the
    private maps take rows. If each column kept its feature's standard deviation, and
    the private maps only centred the rows, the covariance of the projections would
    reveal the direction of every feature.
    """
    m = len(moments.mean)
    if params.anchor.kind == "rotated":
        uniform = (stream.uniform(n_rows, m) - 0.5) / _UNIFORM_SPREAD
        standard = uniform @ stream.rotation(m)
    else:
        standard = np.sqrt(n_rows) * stream.orthogonal_columns(n_rows, m)
    spread = moments.spread
    if params.scaling not in {"shared", "local"}:
        spread = np.full_like(spread, np.sqrt(np.mean(np.square(spread))))
    return moments.mean + spread * standard


def uniform(ranges: Ranges, n_rows: int, stream: KeyedStream) -> FloatArray:
    """Draw anchors (n_rows, m) uniformly within each feature's range, as in the paper."""
    span = ranges.high - ranges.low
    return ranges.low + span * stream.uniform(n_rows, len(span))
