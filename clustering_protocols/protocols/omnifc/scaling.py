"""Scaling that all parties agree on: from the dictionary, or from pooled statistics."""

from __future__ import annotations

import numpy as np

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.numerics.data_source import DataSource, matrix
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.shared_stages.statistics.by_leader import PooledMoments
from clustering_protocols.shared_stages.statistics.moments import PooledReach
from clustering_protocols.terms.preparation import Ranges

from .params import OmniContext, OmniFC
from .units import Scale, build_declared_scale, factors


def build_agreed_scale(context: OmniContext, params: OmniFC) -> Scale:
    """Return the scale that follows from the dictionary or from pooled statistics.

    Pooled moments come with a power of two that no value's distance from the mean
    reaches: a range at most four times too wide, which costs two binary digits and
    shows nobody's own values.
    """
    n_features = context.session.member(context.slot.name).n_columns
    if params.scaling == "unit_norm":
        ones = np.ones(n_features)
        return Scale(factor=ones, minimum=-ones, maximum=ones, unit_norm=True)
    if params.ranges == "declared":
        return build_declared_scale(
            params.scaling, context.session.bounds(context.slot.name)
        )
    known = context.recall(PooledMoments)
    if params.scaling == "minmax":
        low, high, spread = known.minimum, known.maximum, np.ones(n_features)
    else:
        reach = np.ldexp(1.0, context.recall(PooledReach).powers)
        low, high = known.mean - reach, known.mean + reach
        spread = context.session.units(context.slot.name, known.spread)
    return Scale(
        factor=factors(params.scaling, spread, high - low),
        minimum=low,
        maximum=high,
        unit_norm=False,
    )


def scaled_rows(params: OmniFC, scale: Scale, data: DataSource) -> FloatArray:
    """Return a party's scaled rows.

    Raises InvalidData if a value lies outside its range in the dictionary: its
        distances could wrap around the field. ProtocolFailed if it lies outside the
        pooled range, which holds the values of all parties.
    """
    if params.ranges == "declared":
        Ranges(scale.minimum, scale.maximum).check(data)
    X = matrix(data)
    outside = ((scale.minimum > X) | (scale.maximum < X)).any()
    if params.scaling == "minmax" and outside:
        raise ProtocolFailed("The pooled ranges leave out values of this party.")
    return scale(X)
