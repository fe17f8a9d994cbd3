"""What follows from roster and layout alone: widths, anchors, and what does not fit."""

from __future__ import annotations

from clustering_protocols.contract import Plan
from clustering_protocols.errors import ProtocolFailed

from . import anchors
from .params import DataCollaboration


def params_of(plan: Plan) -> DataCollaboration:
    """Return the parameters of a session of `dc`."""
    return DataCollaboration.model_validate(plan.params)


def widths(plan: Plan) -> list[int]:
    """Return m_j, the number of features of each column group."""
    layout = plan.layout
    first = [layout.column_group(column)[0] for column in range(layout.n_column_groups)]
    return [plan.member(slot).n_columns for slot in first]


def row_counts(plan: Plan) -> list[int]:
    """Return n_i, the number of rows of each row group."""
    layout = plan.layout
    first = [layout.row_group(row)[0] for row in range(layout.n_row_groups)]
    return [plan.n_rows(slot) for slot in first]


def n_anchors(plan: Plan) -> int:
    """Return r; :class:`ProtocolFailed` if it is too small for the features."""
    n_features = sum(widths(plan))
    r = anchors.n_anchors(params_of(plan).anchor, n_features)
    needed = anchors.minimum_anchors(n_features)
    if r < needed:
        raise ProtocolFailed(
            f"anchor.n_rows is {r}; {n_features} features need at least {needed}."
        )
    return r


def check(plan: Plan) -> None:
    """Refuse declared features or a number of clusters that the roster does not fit."""
    params = params_of(plan)
    if params.features is not None:
        declared = [len(group) for group in params.features]
        if declared != widths(plan):
            raise ProtocolFailed(
                f"features declares {declared} features per column group; the parties "
                f"hold {widths(plan)}."
            )
    n_rows = sum(row_counts(plan))
    if params.n_clusters > n_rows:
        raise ProtocolFailed(
            f"n_clusters is {params.n_clusters}; there are {n_rows} rows."
        )
