"""Squared distances over a party's columns: how they are encoded, hidden and read."""

from __future__ import annotations

import numpy as np

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import WordArray
from clustering_protocols.secrecy.fixed_point import FixedPoint
from clustering_protocols.shared_stages import dominance
from clustering_protocols.shared_stages.masked_sums import MaskedSum, mask
from clustering_protocols.shared_stages.secrets import group_stream

from .features import Scaler, check_ranges, scaler
from .params import LlfContext, LlfSession

OTHER_INPUTS = (
    "The summed distances are out of range: the parties used different inputs."
)


def build_distance_encoding(session: LlfSession) -> FixedPoint:
    """Return how squared distances over all columns stand as ring elements.

    A centroid is a mean of rows, so no distance exceeds twice the limit of a feature.
    """
    limits = [
        scaler(session, column, None).limit
        for column in range(session.layout.n_column_groups)
    ]
    return FixedPoint.of(np.square(2.01 * np.concatenate(limits)).sum())


def subtract_first(encoding: FixedPoint, total: WordArray) -> WordArray:
    """Return distances (n, k) that are shifted alike in each row, less the first.

    Differences to the first are exact as signed numbers while none exceeds 2^62; the
    shift falls out of them.

    Raises ProtocolFailed if they are out of range.
    """
    words: WordArray = total - total[:, :1]
    if not encoding.fits(words):
        raise ProtocolFailed(OTHER_INPUTS)
    return words


def check_first(
    context: LlfContext, data: DataSource, scale: Scaler
) -> dominance.DominanceQuestion:
    """Refuse rows outside the ranges; return what to ask before any is measured."""
    check_ranges(context, data)
    return dominance.check(context, data.columns, lambda: map(scale, data.batches()))


def hide(context: LlfContext, words: WordArray, name: str, *, shifted: bool) -> None:
    """Mask a share (n, k) in place.

    shifted: whether the leader adds the same secret number to all distances of a row.
    """
    of = MaskedSum.from_context(context, context.session.slots, name)
    if shifted and of.members[0] == context.slot.name:
        # the same for all clusters of a row: what is nearest stays the same
        shift = group_stream(context, "row", f"shift/{of.label}").words(len(words))
        np.add(words, shift[:, None], out=words)
    mask(context, words, of, minimum_members=context.session.params.least_parties)
