"""A bound on the rounds of fuzzy c-means over split rows, in which parties read totals.

In each of T rounds, a party reads k·(F + 1) totals around centroids that it knows.
Each of the two closing sums counts as a further round.
If the other parties have n rows, R rounds give R·k·(F + 1) equations in n·F unknown
numbers, where k is the number of clusters of all runs together.

If columns repeat their values, as scores or yes-or-no answers do, there are few kinds
of rows, and non-negative least squares reveals how many rows of others are of each
kind. Therefore each party counts the bits of information in its own columns.
"""

from __future__ import annotations

import math

import numpy as np

from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.contract.row_history import RoundBound
from clustering_protocols.numerics.data_source import DataSource, matrix
from clustering_protocols.secrecy.fixed_point import EXACT_BITS

from .params import LlfContext, LlfSession, LosslessFederated

_CLOSING = 2  # the closing sums count as two rounds
_NEARLY_ALL = 0.95
"""Columns with a larger share of distinct values are treated as real numbers."""


def check_enough_rows(session: LlfSession) -> None:
    """Raise ProtocolFailed, with parameters that would work, if there are too few rows."""
    params = session.params
    if not applies_to(params) or session.layout.n_column_groups > 1:
        return
    k = sum(run.n_clusters for run in session.runs)
    width = session.member(session.slots[0]).n_columns
    n_rows = fewest_rows_of_others(session)
    excess = _round_bound(k, width, n_rows).explain_excess(
        params.max_iter,
        f"A party reads the totals of {n_rows} rows of others",
        f"{rows_needed(params, k, width)} rows of others",
    )
    if excess:
        raise ProtocolFailed(excess)


def check_distinct_values(context: LlfContext, data: DataSource) -> None:
    """Raise GuardRefused if the totals would reveal how many rows are of each kind.

    The error message says how many updates would be allowed.
    """
    session, params = context.session, context.session.params
    if not applies_to(params):
        return
    k = sum(run.n_clusters for run in session.runs)
    n_rows, width = fewest_rows_of_others(session), len(data.columns)
    equations = _round_bound(k, width, 0).required_unknowns(params.max_iter)
    if n_rows * width >= EXACT_BITS * equations:
        return  # there are enough unknowns even if each cell has a single bit
    distinct = np.array([len(np.unique(column)) for column in matrix(data).T])
    repeats = distinct < _NEARLY_ALL * data.n_rows
    bits = np.where(repeats, np.log2(distinct), EXACT_BITS).sum()
    bound = RoundBound(
        per_round=EXACT_BITS * k * (width + 1),
        further=_CLOSING,
        unknowns=int(n_rows * bits),
    )
    if bound.required_unknowns(params.max_iter) > bound.unknowns:
        raise GuardRefused(
            f"{int(repeats.sum())} columns repeat their values: totals of "
            f"{params.max_iter} rounds would show which rows the parties have. It takes "
            f"max_iter of at most {bound.most_rounds}, more rows, or fewer clusters. With "
            "small_cohorts 'allow' the risk is accepted."
        )


def applies_to(params: LosslessFederated) -> bool:
    """Return whether the bound limits sessions over split rows with these parameters."""
    return params.fuzzy and params.small_cohorts == "refuse"


def rows_needed(params: LosslessFederated, k: int, width: int) -> int:
    """Return how many rows other parties must have if all runs together have k clusters."""
    equations = _round_bound(k, width, 0).required_unknowns(params.max_iter)
    return math.ceil(equations / width)


def _round_bound(k: int, width: int, n_rows: int) -> RoundBound:
    return RoundBound(
        per_round=k * (width + 1), further=_CLOSING, unknowns=n_rows * width
    )


def fewest_rows_of_others(session: LlfSession) -> int:
    """Return the number of other parties' rows in the smallest total that may be read.

    The reader of this total is assumed to be the party with the most rows.
    """
    n_members = session.params.quorum or len(session.slots)
    rows = sorted(session.n_rows(slot) for slot in session.slots)
    return sum(rows[: n_members - 1])
