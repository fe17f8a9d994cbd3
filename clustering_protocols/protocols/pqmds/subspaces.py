"""Which features make up which subspace: follows from their number and the terms."""

from __future__ import annotations

from collections.abc import Sequence

from clustering_protocols.errors import ProtocolFailed

from .params import (
    PqmdsSession,
)


def cut(n_features: int, sub_dim: int) -> Sequence[slice]:
    """Return the features of each subspace, in order.

    The paper pads the last subspace with zeros. A feature that is zero everywhere adds
    nothing to any distance, so there is nothing to do for it; but a single feature that
    is left over would have codes of its own, and joins the subspace before it instead.
    """
    begins = list(range(0, n_features, sub_dim))
    if 1 < sub_dim < n_features and n_features % sub_dim == 1:
        begins.pop()
    ends = [*begins[1:], n_features]
    return [slice(begin, end) for begin, end in zip(begins, ends, strict=True)]


def counts(session: PqmdsSession) -> dict[str, int]:
    """Return how many subspaces each slot has."""
    sub_dim = session.params.sub_dim
    return {
        slot: len(cut(session.member(slot).n_columns, sub_dim))
        for slot in session.slots
    }


def check_roster(session: PqmdsSession) -> None:
    """Refuse more clusters than rows."""
    n_rows, wanted = session.n_rows(session.slots[0]), session.params.n_clusters
    if wanted > n_rows:
        raise ProtocolFailed(f"n_clusters is {wanted}; there are {n_rows} rows.")
