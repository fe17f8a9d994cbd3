"""What follows from the roster alone."""

from __future__ import annotations

from .params import OmniSession


def n_rows(session: OmniSession) -> int:
    """Return n."""
    return sum(session.row_counts)


def n_features(session: OmniSession) -> int:
    """Return d."""
    return session.member(session.slots[0]).n_columns


def width(session: OmniSession) -> int:
    """Return the number of features of a segment, ⌈d / l⌉."""
    return -(-n_features(session) // session.params.segments)
