"""How many rounds of totals a party of fuzzy c-means over split rows may read.

It reads k·(F + 1) totals in each of T rounds, around centroids that it knows; as many
where starts race, for each of them, and no more than as many in each of the two closing
sums. With n rows of others and R rounds these are R·k·(F + 1) equations in n·F unknown
numbers; k is that of all runs together.
"""

from __future__ import annotations

import math

from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.contract.round_bound import RoundBound

from .params import LlfSession, LosslessFederated


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
