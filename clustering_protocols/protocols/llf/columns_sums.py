"""What is added up of split columns: distances and scatter, encoded, hidden, read."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import IntArray, WordArray
from clustering_protocols.secrecy.fixed_point import FixedPoint
from clustering_protocols.shared_stages import dominance
from clustering_protocols.shared_stages.masked_sums import MaskedSum, mask
from clustering_protocols.shared_stages.scaling import Scaler, check_ranges, scaler
from clustering_protocols.shared_stages.secrets import group_stream

from . import messages
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


MOST_ROWS: Final = 20_000
MOST_GROUPS: Final = 128
LEAST_ROWS: Final = 5
"""Of a group, and of a cluster to start from: no centre is a row."""
_MOST_WORDS: Final = 1 << 21


class Sample(NamedTuple):
    """How many joint rows are measured, and to the means of how many groups of them."""

    n_rows: int
    n_groups: int

    @property
    def groups(self) -> IntArray:
        """Return the group (n_rows,) of each row, by the place at which it travels."""
        return np.arange(self.n_rows, dtype=np.int64) % self.n_groups


def sample_of(n_rows: int, n_columns: int) -> Sample:
    """Return what is measured of a table: one group more than columns, if rows suffice."""
    rows = min(n_rows, MOST_ROWS)
    groups = max(2, min(n_columns + 1, rows // LEAST_ROWS, MOST_GROUPS))
    return Sample(min(rows, _MOST_WORDS // groups), groups)


def least_rows(n_rows: int, k: int) -> int:
    """Return how many rows each of k clusters has at least, to start from their means."""
    return max(1, min(LEAST_ROWS, n_rows // k))


def sample_of_session(session: LlfSession) -> Sample:
    """Return the sample of a session's joint rows."""
    return sample_of(session.n_rows(session.slots[0]), sum(session.column_widths))


def hard_labels(asked: messages.MeasureDistances) -> IntArray:
    """Return the labels that an update tells, the largest membership's where fuzzy."""
    if not len(asked.memberships):
        return asked.labels
    labels: IntArray = np.argmax(asked.memberships, axis=1).astype(np.int64)
    return labels


def build_scatter_encoding(session: LlfSession) -> FixedPoint:
    """Return how both sums stand as ring elements: no more than Σ ‖x‖²."""
    columns = range(session.layout.n_column_groups)
    limits = [scaler(session, column, None).square_limit for column in columns]
    return FixedPoint.of(np.concatenate(limits).sum())
