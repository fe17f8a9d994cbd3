"""Who does what: the leader of a row group holds the key, if there are others."""

from __future__ import annotations

from clustering_protocols.contract import SessionContext


def led_by(session: SessionContext) -> dict[str, tuple[str, ...]]:
    """Return the leaders of row groups of two and more, and their other members."""
    groups = session.layout.row_groups
    return {group[0]: group[1:] for group in groups if len(group) > 1}


def leaders_of(session: SessionContext) -> dict[str, str]:
    """Return the slots that have their ids evaluated, and who does it."""
    return {
        slot: leader for leader, members in led_by(session).items() for slot in members
    }
