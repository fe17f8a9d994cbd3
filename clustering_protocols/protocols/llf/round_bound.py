"""Whether the totals of many rounds could be solved for the rows behind them.

Every party of fuzzy c-means over split rows reads k·(F + 1) totals in each of T rounds,
around centroids that it knows; as many where starts race, for each of them, and no more
than as many in each of the two closing sums. With n rows of others and R rounds these are
R·k·(F + 1) equations in n·F unknown numbers; k is that of all runs together. Half as
many equations as unknowns is what we ask for.
"""

from __future__ import annotations

import math

from clustering_protocols.common.errors import ProtocolFailed

from .params import LlfSession, LosslessFederated


def check(session: LlfSession) -> None:
    """Refuse so few rows, clusters and rounds together; nobody has worked yet.

    Raises ProtocolFailed: with the numbers that would fit.
    """
    params = session.params
    applies = params.fuzzy and session.layout.n_column_groups == 1
    if not applies or params.small_cohorts == "allow":
        return
    width = session.member(session.slots[0]).n_columns
    k = sum(run.n_clusters for run in session.runs)
    others, needed = fewest_others(session), rows_needed(params, width, k)
    if others >= needed:
        return
    rounds = rounds_that_fit(params, width, k, others)
    fits = f"max_iter of at most {rounds}" if rounds else "fewer clusters"
    raise ProtocolFailed(
        f"A party reads the totals of {others} rows of others in up to "
        f"{params.max_iter} rounds, and could solve them for the rows. It takes {needed} "
        f"rows of others, or {fits}. With small_cohorts 'allow' the risk is accepted."
    )


def rows_needed(params: LosslessFederated, width: int, k: int) -> int:
    """Return 2·R·k·(1 + 1/F), rounded up; k of all runs."""
    rounds = params.max_iter + _further_rounds(params)
    return math.ceil(2 * rounds * k * (width + 1) / width)


def rounds_that_fit(params: LosslessFederated, width: int, k: int, others: int) -> int:
    """Return the largest T for so many rows of others; 0 if there is none."""
    rounds = others * width // (2 * k * (width + 1))
    return max(rounds - _further_rounds(params), 0)


def _further_rounds(params: LosslessFederated) -> int:
    """Return R - T: the race (one start's first update is made again), two to close."""
    return params.n_init + 1


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
