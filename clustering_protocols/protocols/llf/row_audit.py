"""A party's audit of its own answers: how many of its rows would follow from them.

Everybody together can know all of a party's sums over clusters, by taking their own off
the totals. So no sum is answered after which more than ``sums_limit`` of own rows follow
from all sums answered: of all updates, starts and runs, of the closing, and of earlier
sessions over the same table. Sums of degrees (fuzzy c-means) are bounded by
:mod:`.cohort_size` instead; the sums of their final labels are audited like all. Means of
five rows in a start are not counted: the terms name them as a risk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.contract import DegreeSums, PartyContext, RowHistory
from clustering_protocols.contract.row_history import MOST_ROWS, SHARE, most_following
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.terms.session_risks import SUMS_LIMIT

from . import round_bound, rows_round
from .params import LlfContext
from .rows_round import RowsRound


def audit_sums(
    here: RowsRound, data: DataSource, around: Sequence[FloatArray], number: int
) -> list[RowHistory] | list[DegreeSums]:
    """Return the history once sums around centroids (k, F), of each start, are answered.

    number: of the update; 0 for that of starts that race.

    Raises GuardRefused if too many own rows would follow; it names the updates that
        fit.
    """
    if here.params.fuzzy:
        return [_count_degrees(here, len(around))]
    history = known_history(here.context, data.n_rows)
    for V in around:
        history = history.after(_labels(here, data, V))
    check(here.context, history, data.n_rows, number - 2)
    return [history]


def _count_degrees(here: RowsRound, n_sums: int) -> DegreeSums:
    """Return what sums of degrees tell with so many more; two that close count at first."""
    session, k = here.context.session, here.params.n_clusters
    before, width = here.context.memory.get(DegreeSums), len(here.scale.offset)
    each = k * (width + 1) / (round_bound.fewest_others(session) * width)
    told = 2 * each if before is None else before.equations
    return DegreeSums(equations=told + n_sums * each)


def audit_final_sums(here: RowsRound, labels: IntArray, number: int) -> RowHistory:
    """Return the history once the sums of final labels are answered, after an update.

    Raises GuardRefused: as :func:`audit_sums`.
    """
    history = known_history(here.context, len(labels)).after(labels)
    check(here.context, history, len(labels), number - 1)
    return history


def known_history(context: PartyContext, n_rows: int) -> RowHistory:
    """Return in which sums own rows stood so far, in the run that came last."""
    runs = range(len(context.session.runs))
    kept = [context.memory.scope_to_run(run).get(RowHistory) for run in runs]
    found = [each for each in kept if each is not None]
    none = RowHistory.of_none(n_rows)
    return max(found, key=lambda each: each.n_sums, default=none)


def check(
    context: LlfContext, history: RowHistory, n_rows: int, n_updates: int
) -> None:
    """Refuse a history of so many own rows from which more follow than may.

    n_updates: how many updates of this session would have fitted.
    """
    share = _share(context)
    most = most_following(share, n_rows)
    following = history.n_following(most)
    if following <= most:
        return
    fits = f"max_iter {n_updates} would fit" if n_updates > 0 else "take fewer clusters"
    runs = list(context.session.runs)
    done = runs[: runs.index(context.session.params)]
    if done:
        fits = (
            f"Your rows fit n_clusters {', '.join(str(run.n_clusters) for run in done)}"
        )
    raise GuardRefused(
        f"{following} of your {n_rows} rows could be computed from the sums that you "
        f"have answered and these; 'sums_limit' is {share:g}, {most} rows. {fits}."
    )


def notes(history: RowHistory, n_rows: int) -> dict[str, Any]:
    """Return what the operator reads of the audit."""
    most = min(history.n_following(n_rows), n_rows)
    return {"own rows that all others together could compute, at most": most}


def updates_that_fit(
    n_rows: int, n_clusters: int, n_init: int, share: float = SHARE
) -> int:
    """Return how many updates fit in any case, whatever the clusters are.

    Each adds k - 1 sums that do not follow from the others, as the starts that race and
    the final labels do; the sum of all rows is one more.
    """
    raced = n_init if n_init > 1 else 0
    each = max(n_clusters - 1, 1)
    return max((most_following(share, n_rows) - 1) // each - raced - 1, 0)


def _share(context: PartyContext) -> float:
    share = context.choices.get(SUMS_LIMIT, SHARE)
    if not isinstance(share, int | float) or not 0 <= share <= 1:
        raise GuardRefused(f"{SUMS_LIMIT!r} must be a share, from 0 to 1.")
    return float(share)


def _labels(here: RowsRound, data: DataSource, V: FloatArray) -> IntArray:
    """Return the cluster of each row; of tables of which no history is kept, any."""
    if data.n_rows > MOST_ROWS:
        return np.arange(here.params.n_clusters)
    return rows_round.nearest(here, data, V)
