"""Which stages pool means and spreads, or ranges, of the features of a column group.

Means and spreads go by blind masked sums where a column group has three parties or more.
Groups of two go through envelopes to the group's leader, and so do ranges, which
cannot be summed: that is a risk code. A party that is alone measures at home.
"""

from __future__ import annotations

from clustering_protocols.common.limits import MINIMUM_MEMBERS
from clustering_protocols.contract import Disclosure, Kind, Reader, Stage, to
from clustering_protocols.terms.risks import Harm, Risk, RiskLevel
from clustering_protocols.terms.terms import Layout

RISK_CODE = "first-slot-sees-moments"
RISK = Risk(
    level=RiskLevel.SESSION,
    harm=Harm.STATISTICS,
    sentence="The first party of your column group reads your number of rows, and each "
    "feature's mean and standard deviation.",
    remedy="Three parties or more that hold the same columns.",
    detail="Where anchors are uniform, it reads the range of each feature instead, "
    "however many parties there are.",
)


def stages(layout: Layout, *, moments: bool, ranges: bool) -> tuple[Stage, ...]:
    """Return the stages that a protocol needs; none where it needs nothing."""
    if not (moments or ranges):
        return ()
    # not above: the catalogue reads risks, and no stage is built for that
    from clustering_protocols.shared_stages.statistics import (
        by_leader,
        moments as masked,
    )

    if ranges:
        return (by_leader.stage(moments=moments, ranges=True),)
    small = any(size < MINIMUM_MEMBERS for size in map(len, layout.column_groups))
    through_leader = by_leader.stage(
        moments=True, ranges=False, largest_group=MINIMUM_MEMBERS - 1
    )
    return (
        *([masked.stage()] if masked.groups(layout) else []),
        *([through_leader] if small else []),
    )


def shows_own(layout: Layout, *, moments: bool, ranges: bool) -> bool:
    """Return whether a leader sees what another party measured."""
    largest = None if ranges else MINIMUM_MEMBERS - 1
    return (moments or ranges) and any(
        size > 1 and (largest is None or size <= largest)
        for size in map(len, layout.column_groups)
    )


def masks(layout: Layout, *, moments: bool, ranges: bool) -> bool:
    """Return whether parties read totals of masked sums."""
    sizes = map(len, layout.column_groups)
    return moments and not ranges and any(n >= MINIMUM_MEMBERS for n in sizes)


def shows(layout: Layout, *, moments: bool, ranges: bool) -> frozenset[Disclosure]:
    """Return what those who pool read; nothing where each party is alone."""
    pools = (moments or ranges) and any(
        size > 1 for size in map(len, layout.column_groups)
    )
    return to(Reader.GROUP, Kind.MEANS) if pools else frozenset()
