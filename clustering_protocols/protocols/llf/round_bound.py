"""A bound on the rounds of fuzzy c-means over split rows, in which parties read totals.

In each of T rounds, a party reads k·(F + 1) totals around centroids that it knows.
Each of the two closing sums counts as a further round.
If the other parties have n rows, R rounds give R·k·(F + 1) equations in n·F unknown
numbers, where k is the number of clusters of all runs together.

If columns repeat their values, as scores or yes-or-no answers do, there are fewer
unknown numbers. Therefore each party counts the bits of information in its own columns.
"""

from __future__ import annotations

import math
from typing import Final

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.contract import DegreeSums
from clustering_protocols.contract.row_history import (
    MARGIN,
    RoundBound,
    audit_degrees,
    count_bits,
    count_unknowns,
)
from clustering_protocols.numerics.data_source import DataSource

from .params import LlfContext, LlfSession, LosslessFederated

_CLOSING: Final = 2
"""The closing sums, each of which counts as a further round."""


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


def audit_update(context: LlfContext, data: DataSource) -> DegreeSums:
    """Return this run's sums of degrees, with the next update added.

    The first update of a run also counts its closing sums. The first update of a session
    is refused if the totals of ``max_iter`` updates of all runs would be too many.

    Raises GuardRefused if the totals would reveal rows, unless the terms accept it.
    """
    session, params, width = context.session, context.session.params, len(data.columns)
    k = sum(run.n_clusters for run in session.runs)
    runs = [context.memory.scope_to_run(run) for run in range(len(session.runs))]
    is_first = context.memory.get(DegreeSums) is None
    equations = params.n_clusters * (width + 1) * (1 + is_first * _CLOSING)
    begins = all(run.get(DegreeSums) is None for run in runs)
    planned = k * (width + 1) * (params.max_iter + _CLOSING)

    def remedy(unknowns: float) -> str:
        fit = int(unknowns / (MARGIN * k * (width + 1))) - _CLOSING
        advice = f"max_iter {fit} would fit" if fit > 0 else "Choose fewer clusters"
        return f"{advice}. With small_cohorts 'allow' the risk is accepted."

    return audit_degrees(
        context,
        equations,
        lambda: count_unknowns(count_bits(data), fewest_rows_of_others(session)),
        remedy if begins and applies_to(params) else None,
        planned - equations,
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
