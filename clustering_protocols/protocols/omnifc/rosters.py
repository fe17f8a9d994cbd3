"""What follows from the roster alone."""

from __future__ import annotations

from clustering_protocols.contract import Plan

from .params import OmniFC


def params_of(plan: Plan) -> OmniFC:
    """Return the parameters of a session of `omnifc`."""
    return OmniFC.model_validate(plan.params)


def row_counts(plan: Plan) -> list[int]:
    """Return n_i, the number of rows of each party."""
    return [plan.n_rows(slot) for slot in plan.slots]


def n_rows(plan: Plan) -> int:
    """Return n."""
    return sum(row_counts(plan))


def n_features(plan: Plan) -> int:
    """Return d."""
    return plan.member(plan.slots[0]).n_columns


def width(plan: Plan) -> int:
    """Return the number of features of a segment, ⌈d / l⌉."""
    return -(-n_features(plan) // params_of(plan).segments)
