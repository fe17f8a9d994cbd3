"""Differential privacy of all that a party uploads of its rows.

Two tables that differ in the row of one person, with the same ids, give uploads that
cannot be told apart beyond the budget. Where a code may lie follows from the ranges of
the data dictionary, so that one row moves its own codes alone. Every
code of a person costs its share: codes of all coordinates, subspaces and parties are about
the same people and add up; those of different people do not.

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
from clustering_protocols.secrecy.budget import (
    Mechanism,
    PrivacyCost,
    noise,
    noise_scale,
)
from clustering_protocols.terms.preparation import Ranges

from . import maths
from .maths import EncodedRows
from .params import PqmdsContext, Privacy, ProductQuantisation, n_codes_of, subspaces_of

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
    for features, width in subspaces_of(params, X.shape[1]):
        size = features.stop - features.start
        even = stream.uniform(drawn_rows * size).reshape(drawn_rows, size)
        even = low[features] + even * (high[features] - low[features])
        book = maths.codebook(params, even, stream, width)
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


_STEPS: Final = (
    1024  # codes are rounded to so many steps of the range of their codebook
)


def release(context: PqmdsContext, encoded: EncodedRows) -> FloatArray:
    """Return codes (n, s) of known ranges with noise, as the terms say."""
    privacy = context.session.params.privacy
    n_codes = _n_codes(context)
    share = PrivacyCost(privacy.epsilon / n_codes, privacy.delta / n_codes)
    mechanism: Mechanism = "gaussian" if privacy.mechanism == "gaussian" else "laplace"
    scale = noise_scale(mechanism, _STEPS, share)
    # The same noise whatever the attempt: a second draw would be a second release. Under
    # another agreement, other noise: at another scale the same would cancel.
    stream = context.lasting_stream(f"noise under {context.session.agreement_digest}")
    noisy = np.empty_like(encoded.codes)
    columns = zip(encoded.codes.T, encoded.bounds, strict=True)
    for number, (column, (low, high)) in enumerate(columns):
        drawn = noise(mechanism, stream, scale, len(column))
        step = (high - low) / _STEPS
        noisy[:, number] = low + step * (np.rint((column - low) / step) + drawn)
    return noisy


def own_share(context: PqmdsContext, privacy: Privacy) -> PrivacyCost:
    """Return what this party's codes cost of the budget of a session."""
    share = n_codes_of(context.session)[context.slot.name] / _n_codes(context)
    return PrivacyCost(privacy.epsilon * share, privacy.delta * share)


def _n_codes(context: PqmdsContext) -> int:
    return sum(n_codes_of(context.session).values())
