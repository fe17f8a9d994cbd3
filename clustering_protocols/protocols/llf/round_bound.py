"""How many rounds of totals a party of fuzzy c-means over split rows may read.

It reads k·(F + 1) totals in each of T rounds, around centroids that it knows; as many
where starts race, for each of them, and no more than as many in each of the two closing
sums. With n rows of others and R rounds these are R·k·(F + 1) equations in n·F unknown
numbers; k is that of all runs together.

Where columns repeat their values, as yes and no or scores do, rows are of few kinds, and
non-negative least squares finds how many rows of others are of each: what is unknown of a
row is its bits. So each party counts those of its own table, and 53 for each equation.
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
"""Of more different values, a column counts as real numbers."""


def check(session: LlfSession) -> None:
    """Refuse so few rows, clusters and rounds together; nobody has worked yet.

    Raises ProtocolFailed: with the numbers that would fit.
    """
    params = session.params
    if not applies(params) or session.layout.n_column_groups > 1:
        return
    k = sum(run.n_clusters for run in session.runs)
    width = session.member(session.slots[0]).n_columns
    others = fewest_others(session)
    excess = _bound(k, width, params.n_init, others).excess(
        params.max_iter,
        f"A party reads the totals of {others} rows of others",
        f"{rows_needed(params, k, width)} rows of others",
        _bound(k, width, 1, others),
    )
    if excess:
        raise ProtocolFailed(excess)


def check_values(context: LlfContext, data: DataSource) -> None:
    """Refuse columns of so few values that totals show how many rows are of each kind.

    Raises GuardRefused: with the number of updates that would fit.
    """
    session, params = context.session, context.session.params
    if not applies(params):
        return
    k = sum(run.n_clusters for run in session.runs)
    others, width = fewest_others(session), len(data.columns)
    if others * width >= EXACT_BITS * _bound(k, width, params.n_init, 0).needed(
        params.max_iter
    ):
        return  # a bit in each cell is enough
    distinct = np.array([len(np.unique(column)) for column in matrix(data).T])
    repeats = distinct < _NEARLY_ALL * data.n_rows
    bits = np.where(repeats, np.log2(distinct), EXACT_BITS).sum()
    bound = RoundBound(
        per_round=EXACT_BITS * k * (width + 1),
        further=params.n_init + 1,
        unknowns=int(others * bits),
    )
    if bound.needed(params.max_iter) > bound.unknowns:
        raise GuardRefused(
            f"{int(repeats.sum())} columns repeat their values: totals of "
            f"{params.max_iter} rounds would show which rows the parties have. It takes "
            f"max_iter of at most {bound.most_rounds}, more rows, or fewer clusters. With "
            "small_cohorts 'allow' the risk is accepted."
        )


def applies(params: LosslessFederated) -> bool:
    """Return whether sessions over split rows are held to the bound."""
    return params.fuzzy and params.small_cohorts == "refuse"


def rows_needed(params: LosslessFederated, k: int, width: int) -> int:
    """Return how many rows of others it takes; k of all runs."""
    needed = _bound(k, width, params.n_init, 0).needed(params.max_iter)
    return math.ceil(needed / width)


def _bound(k: int, width: int, n_init: int, others: int) -> RoundBound:
    # the race makes one start's first update again, two sums close
    return RoundBound(
        per_round=k * (width + 1), further=n_init + 1, unknowns=others * width
    )


def fewest_others(session: LlfSession) -> int:
    """Return how many rows of others stand in the smallest total that a party may read.

    Who reads is not known: it is taken to be the member with most rows.
    """
    rows = sorted(session.n_rows(slot) for slot in session.slots)
    return sum(rows[: _fewest_members(session) - 1])


def _fewest_members(session: LlfSession) -> int:
    params, parties = session.params, len(session.slots)
    if params.quorum is not None:
        return min(params.quorum, parties)
    drawn = math.ceil(params.participation * parties)
    return min(max(params.least_parties, drawn), parties)
