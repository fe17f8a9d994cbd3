"""Who stands where: the parties of a row group in a ring, in the order of their slots."""

from __future__ import annotations

from collections.abc import Sequence

from clustering_protocols.terms.terms import Layout


def shared_groups(layout: Layout) -> list[tuple[str, ...]]:
    """Return the row groups of two parties and more."""
    groups = map(layout.row_group, range(layout.n_row_groups))
    return [group for group in groups if len(group) > 1]


def n_passes(layout: Layout) -> int:
    """Return in how many rounds lists are passed on, before the last party has them."""
    return max((len(group) - 2 for group in shared_groups(layout)), default=0)


def neighbour(group: Sequence[str], slot: str, steps: int) -> str:
    """Return who stands some steps behind a slot; before it, where steps are negative."""
    return group[(group.index(slot) + steps) % len(group)]
