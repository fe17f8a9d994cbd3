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

from typing import Final, cast

import numpy as np

from clustering_protocols.algorithms.coincidence import equalise_coordinates
from clustering_protocols.contract import SessionContext
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import FloatArray, WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.fixed_point import FixedPoint
from clustering_protocols.shared_stages.masked_sums import CheckedSum
from clustering_protocols.shared_stages.sums import (
    Findings,
    Sum,
    SumProgram,
    Sums,
    members,
)

from . import messages, round_bound, row_audit, rows_round, starts
from .maths import batches, check_ranges, check_weights, move, rows_of
from .params import FROM_PARTIES, LlfContext, LlfSession
from .rows_party import local_sums
from .rows_round import RowsRound, assign_rows

Updates = list[tuple[FloatArray, FloatArray]]

_DIGITS: Final = 9
"""Values that agree to so many are equal, so that no rounding decides who wins."""


def race_starts(context: LlfContext, data: DataSource) -> Sums[Findings]:
    """Choose the start that is best after one update; forget the others."""
    here = RowsRound.of(context)
    racing = context.memory.get(messages.RacingStarts)
    lanes = _lanes(here) if racing is None else racing.centroids
    objectives = _objectives(here, lanes)

    def begin() -> list[Record]:
        check_ranges(context, data)
        round_bound.check_values(context, data)
        history = row_audit.audit_sums(here, data, list(lanes), 0)
        return [messages.RacingStarts(centroids=lanes), *history]

    def add_lanes() -> WordArray:
        sums = [here.encoding.encode(*local_sums(here, data, V)) for V in lanes]
        values = np.array([_objective(here, data, V) for V in lanes])
        return np.concatenate([*sums, objectives.encode(values)])

    def split(words: WordArray) -> tuple[WordArray, WordArray]:
        """Return the elements of each start's update, and of the values around each."""
        updates = words[: -len(lanes)].reshape(len(lanes), here.encoding.n_words)
        return updates, words[-len(lanes) :]

    def decode_updates(words: WordArray) -> Updates:
        return list(map(here.encoding.decode, split(words)[0]))

    def fits(words: WordArray) -> bool:
        updates, values = split(words)
        return objectives.fits(values) and all(map(here.encoding.fits, updates))

    updates, values = yield from Sum(
        "race",
        local=add_lanes,
        fits=fits,
        decode=lambda words: (
            decode_updates(words),
            objectives.decode(split(words)[1]),
        ),
        compare=lambda total, own: _check_updates(
            here, decode_updates(total), decode_updates(own)
        ),
        remember=begin,
    )
    after = [_value(here, *lane) for lane in zip(lanes, updates, values, strict=True)]
    best = int(np.argmin(after))  # the first of equals
    sums, weights = updates[best]
    first = messages.Centroids(
        number=0,
        centroids=lanes[best],
        moved=None,
        members=list(members(context)),
        sums=sums,
        weights=weights,
    )
    start = messages.StartCentroids(centroids=lanes[best])
    return Findings([start, first, *_forget_starts(context)])


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


def _value(
    here: RowsRound,
    V: FloatArray,
    update: tuple[FloatArray, FloatArray],
    before: float,
) -> float:
    """Return what a start comes to with its update, to nine digits."""
    (sums, weights), params = update, here.params
    n_rows = rows_of(here.context.session, here.context.session.slots)
    check_weights(params, weights, n_rows)
    still = np.zeros_like(V)
    moved = move(V, sums, weights, still, here.scale.step, params.least_rows_moved)
    gained = float(weights @ np.square(moved.centroids - V).sum(axis=1))
    return float(f"{before - gained:.{_DIGITS}g}")


def _forget_starts(context: LlfContext) -> list[Record]:
    """Return the records of all starts, without the starts."""
    none = context.recall(messages.RacingStarts).centroids[:0]
    emptied: list[Record] = [messages.RacingStarts(centroids=none)]
    if context.memory.get(messages.LaneStarts) is not None:
        emptied.append(messages.LaneStarts(centroids=none))
    proposed = context.memory.get(messages.ProposedByAll)
    if proposed is not None:
        emptied.append(proposed.drop_clusters())
    return emptied


def _check_updates(here: RowsRound, updates: Updates, own: Updates) -> None:
    """Refuse totals of different rows, or of fewer than this party has."""
    named = members(here.context)
    totals = [
        rows_round.MemberSums(members=named, sums=sums, counts=weights)
        for sums, weights in updates
    ]
    for total, (_, weights) in zip(totals, own, strict=True):
        rows_round.check_own(total.counts, weights)
    if here.params.fuzzy:
        return
    first, *raced = totals
    for total in raced:
        rows_round.check_same_rows([first], total, here.slack)
    others = rows_round.of_same_members(here.of_other_runs(), first)
    rows_round.check_same_rows(others, first, here.slack)


def _all_slots(session: SessionContext) -> list[tuple[str, ...]]:
    return [tuple(session.slots)]


def _sizes(session: SessionContext, slot: str) -> list[int]:
    """Return the size of the sum: for each start an update, and one number."""
    params = cast("LlfSession", session).params
    width = session.member(slot).n_columns
    return [params.n_init * (params.n_clusters * (width + 1) + 1)]


def _choose_hiding(context: LlfContext) -> CheckedSum:
    params = context.session.params
    return CheckedSum(scope="column", minimum_members=params.least_parties)


PROGRAM: Final = SumProgram(
    "race", 1, race_starts, _sizes, _all_slots, hiding=_choose_hiding
)
