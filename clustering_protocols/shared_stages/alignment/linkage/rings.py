"""Who stands where: parties that may have the same people, in the order of their slots.

Where parties share rows, these are the parties of a row group. Where rows are split,
they are all parties: a person may be at two of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from clustering_protocols.shared_stages.row_selection import shares_any_rows
from clustering_protocols.terms.terms import Layout


def ring_of(layout: Layout, slot: str) -> tuple[str, ...]:
    """Return the parties between which lists go round, a slot among them."""
    place = layout.slot(slot)
    if shares_any_rows(layout):
        return layout.row_group(place.row)
    return layout.column_group(place.column)


def shared_groups(layout: Layout) -> list[tuple[str, ...]]:
    """Return the rings of two parties and more."""
    rings = dict.fromkeys(ring_of(layout, slot) for slot in layout.names)
    return [ring for ring in rings if len(ring) > 1]


def n_passes(layout: Layout) -> int:
    """Return in how many rounds lists are passed on, before the last party has them."""
    return max((len(group) - 2 for group in shared_groups(layout)), default=0)


def neighbour(group: Sequence[str], slot: str, steps: int) -> str:
    """Return who stands some steps behind a slot; before it, where steps are negative."""
    return group[(group.index(slot) + steps) % len(group)]
