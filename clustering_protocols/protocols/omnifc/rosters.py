"""What follows from the roster alone."""

from __future__ import annotations

from clustering_protocols.contract import SessionContext

from .params import OmniFC


def params_of(session: SessionContext) -> OmniFC:
    """Return the parameters of a session of `omnifc`."""
    return OmniFC.model_validate(session.params)


def row_counts(session: SessionContext) -> list[int]:
    """Return n_i, the number of rows of each party."""
    return [session.n_rows(slot) for slot in session.slots]


def n_rows(session: SessionContext) -> int:
    """Return n."""
    return sum(row_counts(session))


def n_features(session: SessionContext) -> int:
    """Return d."""
    return session.member(session.slots[0]).n_columns


def width(session: SessionContext) -> int:
    """Return the number of features of a segment, ⌈d / l⌉."""
    return -(-n_features(session) // params_of(session).segments)
