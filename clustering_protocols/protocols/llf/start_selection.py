"""Stage for split rows: several starts race, and the best one continues alone.

Every start makes one update, whose sums all parties read; with them goes the sum of
squared distances to the start, so that all know the inertia after the update,

    Σ_i ‖x_i - v_c(1)‖² = Σ_i ‖x_i - v_c(0)‖² - Σ_c n_c ‖v_c(1) - v_c(0)‖²,

c the cluster of a row around the start. For fuzzy c-means the same of Σ_c Σ_i μ_ci^λ d²,
with memberships around the start. Each party takes the start of least value (the lowest
of equals) and keeps nothing of the others. The analyst reads nothing of it.

| round | task → contribution: masked share |
|---|---|
| 1 | `add-up` → `share`: sums of one update of each start |
| 2 | `add-up` → `share`, empty: each party reads the total and chooses |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast

import numpy as np

from clustering_protocols.algorithms.coincidence import equalise_coordinates
from clustering_protocols.contract import PartyRole, Reply, SessionContext
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import FloatArray, WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.fixed_point import FixedPoint
from clustering_protocols.shared_stages.checked_sums import CheckedSum
from clustering_protocols.shared_stages.sum_stage import (
    AddUp,
    Groups,
    Phase,
    PhasesAnalyst,
    Share,
    SumStage,
    members,
    no_share,
)

from . import messages, row_audit, starts, steadiness
from .centroids import check_weights, move, rows_of
from .features import batches, check_ranges
from .final_labels import assign_rows
from .params import FROM_PARTIES, LlfContext, LlfSession, LosslessFederated
from .rows_party import local_sums
from .rows_round import RowsRound

Updates = list[tuple[FloatArray, FloatArray]]

LAST_PHASE: Final = 2
_DIGITS: Final = 9
"""Values that agree to so many are equal, so that no rounding decides who wins."""


def analyst() -> PhasesAnalyst:
    """Return the analyst's role: it adds up one sum, which it hands back."""
    return PhasesAnalyst(LAST_PHASE, _all_slots, _n_words)


def _all_slots(session: SessionContext) -> Groups:
    return [tuple(session.slots)]


def _n_words(session: SessionContext, slot: str, phase: int) -> int:
    """Return the size of a share: for each start an update and one number; a tag."""
    if phase == LAST_PHASE:
        return 0
    params = cast("LlfSession", session).params
    width = session.member(slot).n_columns
    return params.n_init * (params.n_clusters * (width + 1) + 1) + 1


class RaceParty(PartyRole[LosslessFederated, AddUp]):
    """Adds up one update of each start, and keeps the best."""

    def reply(self, context: LlfContext, task: AddUp, data: DataSource) -> Reply:
        """Return the share of phase 1; choose in phase 2."""
        known = _SUMS.follow(context, task.phase, task, task.total)
        here = RowsRound.of(context)
        if task.phase == LAST_PHASE:
            return Reply(contribution=no_share(), remember=_choose_start(here, known))
        check_ranges(context, data)
        lanes = _lanes(here)
        history = row_audit.audit_sums(here, data, list(lanes), 0)
        words, known = _SUMS.add(context, known, data)
        kept = messages.LaneStarts(centroids=lanes)
        return Reply(contribution=Share(words=words), remember=[kept, known, *history])


def _lanes(here: RowsRound) -> FloatArray:
    """Return V(0) of each start (lanes, k, F), as its first update begins with it."""
    params, context = here.params, here.context
    if params.start in FROM_PARTIES:
        lanes = list(context.recall(messages.LaneStarts).centroids)
    else:
        lanes = [
            starts.without_messages(context, here.scale, lane)
            for lane in range(params.n_init)
        ]
    return np.array([equalise_coordinates(V, here.scale.step) for V in lanes])


def _words(
    context: LlfContext, _known: messages.StartComparison, data: DataSource
) -> WordArray:
    here = RowsRound.of(context)
    lanes = _lanes(here)
    code, parts = _objectives(here, lanes), []
    for V in lanes:
        sums, weights = local_sums(here, data, V)
        parts.append(here.encoding.encode(sums, weights))
    objectives = np.array([_objective(here, data, V) for V in lanes])
    return np.concatenate([*parts, code.encode(objectives)])


def _objectives(here: RowsRound, lanes: FloatArray) -> FixedPoint:
    """Return how the values around each start stand as ring elements."""
    n_rows = rows_of(here.context.session, here.context.session.slots)
    farthest = [here.scale.farthest_from(V) for V in lanes]
    return FixedPoint.of(n_rows * np.array(farthest))


def _objective(here: RowsRound, data: DataSource, V: FloatArray) -> float:
    """Return Σ_c Σ_i μ_ci^λ ‖x_i - v_c‖² of own rows; 0 and 1 for c-means."""
    found, params = 0.0, here.params
    for _, batch in batches(data, len(V)):
        _, U, D = assign_rows(here, batch, V)
        degrees = U**params.exponent if params.fuzzy else U
        found += float((degrees * D).sum())
    return found


def _choose_hiding(context: LlfContext) -> CheckedSum:
    params = context.session.params
    return CheckedSum(scope="column", minimum_members=params.least_parties)


def _choose_start(here: RowsRound, known: messages.StartComparison) -> list[Record]:
    """Return what to remember: the best start, and nothing of the others."""
    context, words = here.context, known.total
    lanes = context.recall(messages.LaneStarts).centroids
    updates = _updates(here, lanes, words)
    _check_updates(here, updates, _updates(here, lanes, known.own))
    values = list(_values(here, lanes, updates, words))
    best = int(np.argmin(values))  # the first of equals
    forgotten: list[Record] = [messages.LaneStarts(centroids=lanes[:0])]
    proposed = context.memory.get(messages.ProposedByAll)
    if proposed is not None:
        forgotten.append(proposed.drop_clusters())
    forgotten.append(known.without_sums())
    sums, weights = updates[best]
    first = messages.Centroids(
        number=0,
        centroids=lanes[best],
        moved=None,
        members=list(members(context)),
        sums=sums,
        weights=weights,
    )
    return [messages.StartCentroids(centroids=lanes[best]), first, *forgotten]


def _check_updates(here: RowsRound, updates: Updates, own: Updates) -> None:
    """Refuse totals of different rows, or of fewer than this party has."""
    named = members(here.context)
    totals = [
        steadiness.MemberSums(members=named, sums=sums, counts=weights)
        for sums, weights in updates
    ]
    for total, (_, weights) in zip(totals, own, strict=True):
        steadiness.check_own(total.counts, weights)
    if here.params.fuzzy:
        return
    first, *raced = totals
    for total in raced:
        steadiness.check_same_rows([first], total, here.slack)
    others = steadiness.of_same_members(here.of_other_runs(), first)
    steadiness.check_same_rows(others, first, here.slack)


def _fits(
    context: LlfContext, _known: messages.StartComparison, words: WordArray
) -> bool:
    """Return whether the total is as small as it must be, for each start."""
    here = RowsRound.of(context)
    lanes = context.recall(messages.LaneStarts).centroids
    updates = words[: -len(lanes)].reshape(len(lanes), here.encoding.n_words)
    objectives = _objectives(here, lanes).fits(words[-len(lanes) :])
    return objectives and all(map(here.encoding.fits, updates))


def _learn(
    _context: LlfContext, _known: messages.StartComparison, words: WordArray
) -> Mapping[str, object]:
    return {"total": words}


def _updates(here: RowsRound, lanes: FloatArray, words: WordArray) -> Updates:
    """Return sums (k, F) and weights (k,) of each start."""
    updates = words[: -len(lanes)].reshape(len(lanes), -1)
    return [here.encoding.decode(update) for update in updates]


def _values(
    here: RowsRound, lanes: FloatArray, updates: Updates, words: WordArray
) -> Iterator[float]:
    """Yield what each start comes to with its update, to nine digits."""
    session, params = here.context.session, here.params
    n_rows, least = rows_of(session, session.slots), params.least_rows_moved
    before = _objectives(here, lanes).decode(words[-len(lanes) :])
    for V, (sums, weights), value in zip(lanes, updates, before, strict=True):
        check_weights(params, weights, n_rows)
        still = np.zeros_like(V)
        after = move(V, sums, weights, still, here.scale.step, least).centroids
        gained = float(weights @ np.square(after - V).sum(axis=1))
        yield float(f"{value - gained:.{_DIGITS}g}")


def _share_size(context: LlfContext, known: messages.StartComparison) -> int:
    return _n_words(context.session, context.slot.name, known.phase)


_SUMS: Final = SumStage(
    name="race",
    phases=[Phase(_words, _fits, _learn)],
    state=messages.StartComparison,
    n_words=_share_size,
    hiding=_choose_hiding,
    keeps_own=True,
)
