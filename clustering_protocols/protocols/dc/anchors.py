"""Anchor data X^anc of a column group: all its parties draw the same, nobody else can."""

from __future__ import annotations

from clustering_protocols.arrays import FloatArray
from clustering_protocols.preparation.statistics import PooledMoments
from clustering_protocols.randomness import KeyedStream

from .params import Anchor


def n_anchors(anchor: Anchor, n_features: int) -> int:
    """Return r for a number of features over all column groups."""
    return anchor.n_rows or max(500, 5 * n_features)


def minimum_anchors(n_features: int) -> int:
    """Return the fewest anchors that determine the collaboration maps.

    With r = m the maps fit the anchors and miss the data.
    """
    return 2 * n_features


def draw(
    anchor: Anchor, n_rows: int, moments: PooledMoments, stream: KeyedStream
) -> FloatArray:
    """Return X^anc (n_rows, m) in the units of the data.

    gaussian: normal with the pooled mean and spread of each feature. Of independent
    normal columns every rotation looks alike, so that a blind source separation of
    their projections gains nothing.
    uniform: within the pooled range of each feature (the paper's choice).
    """
    if anchor.kind == "gaussian":
        drawn = stream.normal(n_rows, len(moments.mean))
        return moments.mean + moments.spread * drawn
    span = moments.maximum - moments.minimum
    return moments.minimum + span * stream.uniform(n_rows, len(span))
