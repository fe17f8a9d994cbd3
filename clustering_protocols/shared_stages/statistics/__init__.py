"""Choice of the stages that pool means and deviations, or ranges, of a column group.

Column groups of three or more parties pool means and deviations by blind masked sums.
In groups of two, the other party sends its means and deviations to the leader in an
envelope. Ranges cannot be added up, so the parties of groups of any size send their
ranges to the leader. The terms list these two cases as risks. A party that is alone in
its group sends nothing.
"""

from __future__ import annotations

from clustering_protocols.common.limits import MINIMUM_MEMBERS
from clustering_protocols.contract import (
    Disclosure,
    Kind,
    Reader,
    Stage,
    disclosures_to,
)
from clustering_protocols.terms import session_risks
from clustering_protocols.terms.terms import Layout


def build_stages(layout: Layout, *, moments: bool, ranges: bool) -> tuple[Stage, ...]:
    """Return the stages that a protocol needs; empty if it pools nothing."""
    if not (moments or ranges):
        return ()
    # Imported here because the catalogue imports this module only for its risk codes.
    from clustering_protocols.shared_stages.statistics import (
        by_leader,
        moments as masked,
    )

    if ranges:
        return (by_leader.build_stage(moments=moments, ranges=True),)
    small = any(size < MINIMUM_MEMBERS for size in map(len, layout.column_groups))
    through_leader = by_leader.build_stage(
        moments=True, ranges=False, largest_group=MINIMUM_MEMBERS - 1
    )
    return (
        *([masked.build_stage()] if masked.large_groups(layout) else []),
        *([through_leader] if small else []),
    )


def risk_codes(layout: Layout, *, moments: bool, ranges: bool) -> list[str]:
    """Return the risk codes; empty if no leader can see the measurements of others."""
    sizes = list(map(len, layout.column_groups))
    if ranges and max(sizes) > 1:
        return [session_risks.POOLED_RANGES]
    is_small = any(1 < size < MINIMUM_MEMBERS for size in sizes)
    return [session_risks.TWO_PARTIES] if moments and is_small else []


def disclosures(
    layout: Layout, *, moments: bool, ranges: bool
) -> frozenset[Disclosure]:
    """Return what parties learn from pooled values; empty if each party is alone."""
    pools = (moments or ranges) and any(
        size > 1 for size in map(len, layout.column_groups)
    )
    return disclosures_to(Reader.GROUP, Kind.MEANS) if pools else frozenset()
