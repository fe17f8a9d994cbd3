"""What follows from roster and layout alone: widths, anchors, and what does not fit."""

from __future__ import annotations

from clustering_protocols.common.errors import ProtocolFailed

from . import anchors
from .params import DcSession

LEAST_WIDTH = 2
"""Columns of a party that leaves one dimension out: of one alone it could not."""


def n_anchors(session: DcSession) -> int:
    """Return r; :class:`ProtocolFailed` if it is too small for the features."""
    n_features = sum(session.column_widths)
    r = anchors.n_anchors(session.params.anchor, n_features)
    needed = anchors.minimum_anchors(n_features)
    if r < needed:
        raise ProtocolFailed(
            f"anchor.n_rows is {r}; {n_features} features need at least {needed}."
        )
    return r


def check(session: DcSession) -> None:
    """Refuse single columns where one dimension stays at home, and what does not fit.

    Of one column alone every map is that column, up to shift and scale. Terms that let
    all dimensions out say so by a risk code; under others nobody has accepted it.

    Raises ProtocolFailed.
    """
    if session.params.leaves_one_out:
        _check_widths(session)
    n_anchors(session)
    n_rows, wanted = sum(session.row_counts), session.params.n_clusters
    if wanted > n_rows:
        raise ProtocolFailed(f"n_clusters is {wanted}; there are {n_rows} rows.")


def _check_widths(session: DcSession) -> None:
    narrow = [s for s in session.slots if session.member(s).n_columns < LEAST_WIDTH]
    if narrow:
        raise ProtocolFailed(
            f"One column alone of {', '.join(narrow)}: whatever the map, it would be "
            f"sent as it is. It takes {LEAST_WIDTH} at every party, or dimensions 'all'."
        )
