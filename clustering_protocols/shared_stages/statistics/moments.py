"""Stage: pooled mean and spread of a column group's features, by blind masked sums.

For column groups of at least three parties. Nobody sees another party's moments, and the
analyst reads none at all; nothing has to be declared. Fixed point needs a bound before it
adds: so the parties first count how many of them have their largest absolute value in
which power of two, per feature, and again for the deviations from the pooled mean.
Squares are taken of deviations, never of values: with mean 10^6 and spread 1 sums of
squares would keep no digit of the spread.

| round | task → contribution: masked share |
|---|---|
| 1 | `add-up` → `share`: powers of two of the largest values |
| 2 | `add-up` → `share`: sums of values |
| 3 | `add-up` → `share`: powers of two of the largest deviations |
| 4 | `add-up` → `share`: sums of squared deviations |
| 5 | `add-up` → `share`, empty: the moments follow from the total |

Who was told another total than the others has another transcript: its next masks do not
cancel, and it signs another closing.

All sums are of whole units, one rounding per row: they do not depend on how rows are cut
into parties and batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from clustering_protocols.contract import (
    Params,
    PartyContext,
    PartyRole,
    Reply,
    SessionContext,
    Stage,
)
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import FloatArray, IntArray, Spec, WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.fixed_point import FixedPoint
from clustering_protocols.shared_stages.statistics import other_units
from clustering_protocols.shared_stages.statistics.by_leader import (
    PooledMoments,
    measure,
)
from clustering_protocols.shared_stages.statistics.powers import (
    MOST_POWER,
    PowerCounts,
    bound_of,
    count_units,
    varies,
)
from clustering_protocols.shared_stages.sum_stage import (
    AddUp,
    Phase,
    PhasesAnalyst,
    Share,
    SumStage,
    SumState,
    exchange,
    members,
    n_rows,
    no_share,
)
from clustering_protocols.terms.terms import Layout

NAME = "moments"
POWERS: Final = PowerCounts(MOST_POWER + 1)
"""Deviations may be twice as large as values."""

_LAST_PHASE: Final = 5
_COUNTS: Final = frozenset({1, 3})


def _no_powers() -> IntArray:
    return np.empty(0, dtype=np.int64)


def _no_numbers() -> FloatArray:
    return np.empty(0)


class PartialMoments(SumState):
    """Memory: what is known so far.

    squares: sums of squared deviations, when all is known.
    """

    kind = "partial-moments"

    powers: Annotated[IntArray, Spec("powers")] = Field(default_factory=_no_powers)
    mean: Annotated[FloatArray, Spec("means")] = Field(default_factory=_no_numbers)
    deviation_powers: Annotated[IntArray, Spec("deviation_powers")] = Field(
        default_factory=_no_powers
    )
    squares: Annotated[FloatArray, Spec("squares")] = Field(default_factory=_no_numbers)


def groups(layout: Layout) -> list[tuple[str, ...]]:
    """Return the column groups that are large enough for masked sums."""
    columns = filter(layout.adds_up, range(layout.n_column_groups))
    return list(map(layout.column_group, columns))


def _list_groups(session: SessionContext) -> list[tuple[str, ...]]:
    return groups(session.layout)


def _width(session: SessionContext, slot: str, phase: int) -> int:
    return _n_words(phase, session.member(slot).n_columns)


def _n_words(phase: int, n_columns: int) -> int:
    """Return the size of a phase's share: its ring elements, and a tag."""
    if phase == _LAST_PHASE:
        return 0
    return 1 + n_columns * (POWERS.size if phase in _COUNTS else 1)


class MomentsParty(PartyRole[Params, AddUp]):
    """Adds its share, and reads each total when it comes back."""

    def takes_part(self, context: PartyContext, task: type[Record]) -> bool:
        """Return whether the column group is large enough for masked sums."""
        return context.session.layout.adds_up(context.slot.column)

    def reply(self, context: PartyContext, task: AddUp, data: DataSource) -> Reply:
        """Return the masked share of the phase in hand."""
        known = _SUMS.follow(context, task.phase, task, task.total)
        if task.phase < _LAST_PHASE:
            words, known = _SUMS.add(context, known, data)
            return Reply(contribution=Share(words=words), remember=[known])
        outcome = _pool_moments(context, known)
        own = measure(data, moments=True, ranges=False)
        doubts = other_units.ask(context, data.columns, own, outcome)
        remember = [known, outcome]
        return Reply(contribution=no_share(), remember=remember, doubts=doubts)


def _pool_moments(context: PartyContext, known: PartialMoments) -> PooledMoments:
    deviations, n = np.maximum(known.squares, 0.0), n_rows(context)
    there = varies(deviations, n, known.mean, _of_values(context, known).unit)
    return PooledMoments(
        n_rows=n,
        mean=known.mean,
        deviations=np.where(there, deviations, 0.0),
        minimum=np.empty(0),
        maximum=np.empty(0),
    )


# Phases 1 and 3: powers of two


def _count_values(
    _context: PartyContext, _known: PartialMoments, data: DataSource
) -> WordArray:
    return _count_powers(data, np.zeros(len(data.columns)), MOST_POWER)


def _count_deviations(
    _context: PartyContext, known: PartialMoments, data: DataSource
) -> WordArray:
    return _count_powers(data, known.mean, POWERS.highest)


def _count_powers(data: DataSource, mean: FloatArray, most: int) -> WordArray:
    """Return, per feature, a one at the power of two that bounds all |x - mean|."""
    largest = np.zeros(len(data.columns))
    for batch in data.batches():
        np.maximum(largest, np.abs(batch - mean).max(axis=0), out=largest)
    return POWERS.count(largest, data.columns, most).view(np.uint64)


def _fits_powers(
    context: PartyContext, _known: PartialMoments, words: WordArray
) -> bool:
    return POWERS.fits(words.view(np.int64), len(members(context)))


def _learn_powers(
    _context: PartyContext, known: PartialMoments, words: WordArray
) -> Mapping[str, object]:
    name = "powers" if known.phase == 1 else "deviation_powers"
    return {name: POWERS.largest(words.view(np.int64))}


# Phases 2 and 4: sums


def _of_values(context: PartyContext, known: PartialMoments) -> FixedPoint:
    return FixedPoint.of(n_rows(context) * bound_of(known.powers))


def _of_squares(context: PartyContext, known: PartialMoments) -> FixedPoint:
    return FixedPoint.of(n_rows(context) * bound_of(2 * known.deviation_powers))


def _add_values(
    context: PartyContext, known: PartialMoments, data: DataSource
) -> WordArray:
    unit, most = _of_values(context, known).unit, bound_of(known.powers)
    parts = (count_units(batch, unit, most) for batch in data.batches())
    return _sum_up(parts, len(data.columns))


def _add_squares(
    context: PartyContext, known: PartialMoments, data: DataSource
) -> WordArray:
    unit = _of_squares(context, known).unit
    most = bound_of(2 * known.deviation_powers)
    parts = (
        count_units(np.square(batch - known.mean), unit, most)
        for batch in data.batches()
    )
    return _sum_up(parts, len(data.columns))


def _sum_up(parts: Iterable[IntArray], width: int) -> WordArray:
    return sum(parts, np.zeros(width, dtype=np.int64)).view(np.uint64)


def _fits_values(
    context: PartyContext, known: PartialMoments, words: WordArray
) -> bool:
    return _of_values(context, known).fits(words)


def _fits_squares(
    context: PartyContext, known: PartialMoments, words: WordArray
) -> bool:
    positive = bool((words.view(np.int64) >= 0).all())
    return positive and _of_squares(context, known).fits(words)


def _learn_mean(
    context: PartyContext, known: PartialMoments, words: WordArray
) -> Mapping[str, object]:
    return {"mean": _of_values(context, known).decode(words) / n_rows(context)}


def _learn_squares(
    context: PartyContext, known: PartialMoments, words: WordArray
) -> Mapping[str, object]:
    return {"squares": _of_squares(context, known).decode(words)}


def _share_size(context: PartyContext, known: PartialMoments) -> int:
    return _width(context.session, context.slot.name, known.phase)


_SUMS: Final = SumStage(
    name="phase-{}",
    phases=(
        Phase(_count_values, _fits_powers, _learn_powers),
        Phase(_add_values, _fits_values, _learn_mean),
        Phase(_count_deviations, _fits_powers, _learn_powers),
        Phase(_add_squares, _fits_squares, _learn_squares),
    ),
    state=PartialMoments,
    n_words=_share_size,
)


def stage() -> Stage:
    """Return the stage; it needs the secrets of column groups."""
    return Stage(
        name=NAME,
        analyst=lambda: PhasesAnalyst(_LAST_PHASE, _list_groups, _width),
        party=MomentsParty,
        exchanges=(exchange(_LAST_PHASE),),
    )
