"""Which features make up which subspace: follows from their number and the terms."""

from __future__ import annotations

from collections.abc import Sequence

from clustering_protocols.common.errors import ProtocolFailed

from .params import PqmdsSession, ProductQuantisation


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


def of(params: ProductQuantisation, n_features: int) -> list[tuple[slice, int]]:
    """Return the features of each subspace, and how many coordinates are sent of it.

    Both follow from the terms and the number of features alone, so that the analyst and
    the budget know them: where the centres of a subspace span less, the rest are zeros.
    A subspace that one more feature has joined has one more where all are sent.
    """
    whole = params.n_coordinates == params.sub_dim
    return [
        (f, f.stop - f.start if whole else min(params.n_coordinates, f.stop - f.start))
        for f in cut(n_features, params.sub_dim)
    ]


def counts(session: PqmdsSession) -> dict[str, int]:
    """Return how many codes of a row each slot sends."""
    return {
        slot: sum(
            width for _, width in of(session.params, session.member(slot).n_columns)
        )
        for slot in session.slots
    }


def check_roster(session: PqmdsSession) -> None:
    """Refuse more clusters than rows."""
    n_rows, wanted = session.n_rows(session.slots[0]), session.params.n_clusters
    if wanted > n_rows:
        raise ProtocolFailed(f"n_clusters is {wanted}; there are {n_rows} rows.")
