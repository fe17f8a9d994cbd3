"""Who stands where in a row group, in the order of its slots."""

from __future__ import annotations

from collections.abc import Sequence

from clustering_protocols.terms.terms import Layout


def ring_of(layout: Layout, slot: str) -> tuple[str, ...]:
    """Return the parties between which lists go round, a slot among them."""
    return layout.row_group(layout.slot(slot).row)


def shared_groups(layout: Layout) -> list[tuple[str, ...]]:
    """Return the rings of two parties and more."""
    return [group for group in layout.row_groups if len(group) > 1]


def n_passes(layout: Layout) -> int:
    """Return in how many rounds lists are passed on, before the last party has them."""
    return max((len(group) - 2 for group in shared_groups(layout)), default=0)


def neighbour(group: Sequence[str], slot: str, steps: int) -> str:
    """Return who stands some steps behind a slot; before it, where steps are negative."""
    return group[(group.index(slot) + steps) % len(group)]
