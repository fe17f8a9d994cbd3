"""Messages of the stages that several protocols begin with, for :mod:`.sizing`.

Rows that are aligned by private set intersection are not counted: of every id some
hundred bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

from clustering_protocols.common.limits import MINIMUM_MEMBERS
from clustering_protocols.contract.sizing import WORD, Extent, Flow
from clustering_protocols.terms.terms import Layout

_POWERS = 192  # of two, in which largest values are counted
_SECRET = 96
_DIGESTS = 160
_VECTORS = 4  # mean, deviations, minimum and maximum


def list_setup_flows(extent: Extent) -> Iterator[Flow]:
    """Yield what secrets and the digests of rows and columns take."""
    others, leaders = _members_led(extent.layout), _leaders(extent.layout)
    yield Flow(envelopes=others, sealed=_SECRET, senders=leaders)
    yield Flow(envelopes=others, sealed=_DIGESTS, senders=leaders)


def list_pooling_flows(
    extent: Extent, *, moments: bool, ranges: bool
) -> Iterator[Flow]:
    """Yield what statistics of features take that parties pool."""
    if not (moments or ranges):
        return
    layout, d = extent.layout, extent.party_features
    sizes = list(map(len, layout.column_groups))
    if not ranges and max(sizes) >= MINIMUM_MEMBERS:
        counts, sums = WORD * (1 + _POWERS * d), WORD * (1 + d)
        yield from (
            Flow(2, answer=counts, task=counts),
            Flow(2, answer=sums, task=sums),
            Flow(),
        )
    if ranges or min(sizes) < MINIMUM_MEMBERS:
        among = max(n for n in sizes if ranges or n < MINIMUM_MEMBERS)
        yield Flow()
        leaders = layout.n_column_groups
        yield Flow(envelopes=among - 1, sealed=WORD * _VECTORS * d, senders=leaders)


def _leaders(layout: Layout) -> int:
    """Return how many parties lead a group, at most."""
    return min(len(layout.slots), max(layout.n_row_groups, layout.n_column_groups))


def _members_led(layout: Layout) -> int:
    """Return the most envelopes of a leader: to the others of its groups."""
    return max(
        len(layout.row_group(slot.row)) + len(layout.column_group(slot.column)) - 2
        for slot in layout.slots
    )
