"""A bound on the rounds of totals that parties of fuzzy c-means over split rows read.

A party reads k·(F + 1) totals in each of T rounds, around centroids that it knows. Each
start that loses a race counts as a further round, as does each of two closing sums. With n
rows of others and R rounds these are R·k·(F + 1) equations in n·F unknown numbers, where k
counts the clusters of all runs together.

If columns repeat their values, as yes and no or scores do, there are few kinds of rows, and
non-negative least squares finds how many rows of others are of each kind. So each party
counts the bits of its own columns.
"""

from __future__ import annotations

import math

import numpy as np

from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.contract.row_history import RoundBound
from clustering_protocols.numerics.data_source import DataSource, matrix
from clustering_protocols.secrecy.fixed_point import EXACT_BITS

from .params import LlfContext, LlfSession, LosslessFederated

_NEARLY_ALL = 0.95
"""With a larger share of different values, a column counts as real numbers."""


def check_enough_rows(session: LlfSession) -> None:
    """Raise ProtocolFailed, with numbers that fit, if rows are too few for all rounds."""
    params = session.params
    if not applies_to(params) or session.layout.n_column_groups > 1:
        return
    k = sum(run.n_clusters for run in session.runs)
    width = session.member(session.slots[0]).n_columns
    n_rows = fewest_rows_of_others(session)
    excess = _round_bound(k, width, params.n_init, n_rows).excess(
        params.max_iter,
        f"A party reads the totals of {n_rows} rows of others",
        f"{rows_needed(params, k, width)} rows of others",
        _round_bound(k, width, 1, n_rows),
    )
    if excess:
        raise ProtocolFailed(excess)


def check_distinct_values(context: LlfContext, data: DataSource) -> None:
    """Raise GuardRefused if totals would show how many rows are of each kind.

    The error has the number of updates that would fit.
    """
    session, params = context.session, context.session.params
    if not applies_to(params):
        return
    k = sum(run.n_clusters for run in session.runs)
    n_rows, width = fewest_rows_of_others(session), len(data.columns)
    equations = _round_bound(k, width, params.n_init, 0).needed(params.max_iter)
    if n_rows * width >= EXACT_BITS * equations:
        return  # one bit in each cell gives enough unknowns
    distinct = np.array([len(np.unique(column)) for column in matrix(data).T])
    repeats = distinct < _NEARLY_ALL * data.n_rows
    bits = np.where(repeats, np.log2(distinct), EXACT_BITS).sum()
    bound = RoundBound(
        per_round=EXACT_BITS * k * (width + 1),
        further=params.n_init + 1,
        unknowns=int(n_rows * bits),
    )
    if bound.needed(params.max_iter) > bound.unknowns:
        raise GuardRefused(
            f"{int(repeats.sum())} columns repeat their values: totals of "
            f"{params.max_iter} rounds would show which rows the parties have. It takes "
            f"max_iter of at most {bound.most_rounds}, more rows, or fewer clusters. With "
            "small_cohorts 'allow' the risk is accepted."
        )


def applies_to(params: LosslessFederated) -> bool:
    """Return whether the bound applies to sessions over split rows."""
    return params.fuzzy and params.small_cohorts == "refuse"


def rows_needed(params: LosslessFederated, k: int, width: int) -> int:
    """Return how many rows of others are needed; k counts the clusters of all runs."""
    equations = _round_bound(k, width, params.n_init, 0).needed(params.max_iter)
    return math.ceil(equations / width)


def _round_bound(k: int, width: int, n_init: int, n_rows: int) -> RoundBound:
    # further sums: those of the starts that lose the race, and two closing sums
    return RoundBound(
        per_round=k * (width + 1), further=n_init + 1, unknowns=n_rows * width
    )


def fewest_rows_of_others(session: LlfSession) -> int:
    """Return the number of others' rows in the smallest total that a party may read.

    The reader is assumed to be the member with most rows.
    """
    params, n_parties = session.params, len(session.slots)
    n_members = params.quorum
    if n_members is None:
        cohort = math.ceil(params.participation * n_parties)
        n_members = max(params.least_parties, cohort)
    rows = sorted(session.n_rows(slot) for slot in session.slots)
    return sum(rows[: min(n_members, n_parties) - 1])
