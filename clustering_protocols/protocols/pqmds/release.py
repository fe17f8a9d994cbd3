"""Differential privacy of everything that a party uploads about its rows.

Two tables that have the same ids and differ in the row of one person give uploads that
cannot be distinguished beyond the budget. Every code of a person spends part of the
budget. The parts of all coordinates, subspaces and parties add up, because these codes
are about the same people. The parts of different people do not add up.

A person's row may only change the codes of that person. A codebook, mean, standard
deviation or range that was computed from the rows would change everybody's codes. So
features are clipped to the ranges of the data dictionary and scaled by these, and
codebooks are computed from rows that the party's own stream draws uniformly from the
ranges.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.secrecy.budget import discrete_laplace, noise_scale
from clustering_protocols.terms.preparation import Ranges

from . import maths
from .maths import EncodedRows
from .params import PqmdsContext, Privacy, ProductQuantisation, n_codes_of

_ROWS_PER_CENTRE: Final = (
    16  # number of rows that are drawn for each centre of a codebook
)


def uniform_spread(ranges: Ranges) -> FloatArray:
    """Return the standard deviations (m,) of uniform values within the ranges."""
    deviations: FloatArray = (ranges.high - ranges.low) / np.sqrt(12)
    return deviations


def encode(
    params: ProductQuantisation,
    ranges: Ranges,
    X: FloatArray,
    stream: KeyedStream,
    units: FloatArray | None = None,
) -> EncodedRows:
    """Return the codes of rows X (n, m), clipped to the ranges.

    The codes of a row depend on the ranges, the units, the stream and that row.
    Everything else in the result does not depend on any row.

    units: float64 (m,); used instead of the standard deviations within the ranges if
        the terms prepare columns.
    """
    low, high, rows = ranges.low, ranges.high, np.clip(X, ranges.low, ranges.high)
    if params.scaling != "none":
        middle = (ranges.low + ranges.high) / 2
        divisor = uniform_spread(ranges) if units is None else units
        low, high, rows = ((values - middle) / divisor for values in (low, high, rows))
    shape = _ROWS_PER_CENTRE * params.codebook_size, len(low)
    uniform = stream.uniform(shape[0] * shape[1]).reshape(shape)
    return maths.encode(params, low + uniform * (high - low), rows, stream)


_STEPS: Final = (
    1024  # number of steps per range of a codebook; codes are rounded to these
)


def release(context: PqmdsContext, encoded: EncodedRows) -> FloatArray:
    """Return the codes (n, s) with the noise that the terms require."""
    privacy = context.session.params.privacy
    n_codes = sum(n_codes_of(context.session).values())
    scale = noise_scale(_STEPS, privacy.epsilon / n_codes)
    # The same noise in every attempt, because a second draw would be a second release;
    # independent noise under each agreement: the same at two scales could be cancelled.
    stream = context.lasting_stream(f"noise under {context.session.agreement_digest}")
    noisy = np.empty_like(encoded.codes)
    columns = zip(encoded.codes.T, encoded.bounds, strict=True)
    for number, (column, (low, high)) in enumerate(columns):
        steps = discrete_laplace(stream, scale, len(column))
        step = (high - low) / _STEPS
        noisy[:, number] = low + step * (np.rint((column - low) / step) + steps)
    return noisy


def own_share(context: PqmdsContext, privacy: Privacy) -> float:
    """Return the part of the session's ε that this party's codes spend."""
    n_codes = n_codes_of(context.session)
    return privacy.epsilon * n_codes[context.slot.name] / sum(n_codes.values())
