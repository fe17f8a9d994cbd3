"""Choice of the stages that pool means and deviations, or ranges, of a column group.

Parties pool means and deviations by blind masked sums. In groups of two, each party can
subtract its own from the total and so reads those of the other. Ranges cannot be added
up, so the parties send their ranges to the leader of the group. The terms list these
two cases as risks. A party that is alone in its group sends nothing.
"""

from __future__ import annotations

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
    # Imported here because the catalogue imports this module only for its risk codes.
    from clustering_protocols.shared_stages.statistics import (
        moments as masked,
        ranges as through_leader,
    )

    return (
        *([masked.build_stage()] if moments and _pools(layout) else []),
        *([through_leader.build_stage()] if ranges else []),
    )


def risk_codes(layout: Layout, *, moments: bool, ranges: bool) -> list[str]:
    """Return the risk codes; empty if no party can see the measurements of others."""
    sizes = list(map(len, layout.column_groups))
    return [
        *([session_risks.POOLED_RANGES] if ranges and _pools(layout) else []),
        *([session_risks.TWO_PARTIES] if moments and 2 in sizes else []),
    ]


def disclosures(
    layout: Layout, *, moments: bool, ranges: bool
) -> frozenset[Disclosure]:
    """Return what parties learn from pooled values; empty if each party is alone."""
    pools = (moments or ranges) and _pools(layout)
    return disclosures_to(Reader.GROUP, Kind.MEANS) if pools else frozenset()


def _pools(layout: Layout) -> bool:
    return any(len(group) > 1 for group in layout.column_groups)
