"""Who does what: the first slot of a row group holds the key, if there are others."""

from __future__ import annotations

from clustering_protocols.contract import Plan


def firsts(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Return the first slots of row groups of two and more, and their other members."""
    layout = plan.layout
    groups = [layout.row_group(row) for row in range(layout.n_row_groups)]
    return {group[0]: group[1:] for group in groups if len(group) > 1}


def others(plan: Plan) -> dict[str, str]:
    """Return the slots that have their ids evaluated, and who does it."""
    return {slot: first for first, members in firsts(plan).items() for slot in members}
