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

from functools import partial
from typing import Annotated, Final

import numpy as np

from clustering_protocols.common.errors import InvalidData, ProtocolFailed
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
from clustering_protocols.shared_stages.masked_sums import MaskedSum, read, share
from clustering_protocols.shared_stages.statistics import other_units
from clustering_protocols.shared_stages.statistics.by_leader import (
    PooledMoments,
    measure,
)
from clustering_protocols.shared_stages.sum_stage import (
    AddUp,
    PhasesAnalyst,
    Share,
    exchange,
    members,
    n_rows,
    no_share,
)
from clustering_protocols.terms.terms import Layout

NAME = "moments"
LOWEST_POWER: Final = -128
HIGHEST_POWER: Final = 63
_POWERS: Final = np.arange(LOWEST_POWER, HIGHEST_POWER + 1)
_LAST_PHASE: Final = 5
_COUNTS: Final = frozenset({1, 3})


class PartialMoments(Record):
    """Memory: what is known so far; the transcript (hex) of the last phase's sum."""

    kind = "partial-moments"

    phase: int
    transcript: str
    powers: Annotated[IntArray, Spec("powers")]
    mean: Annotated[FloatArray, Spec("means")]
    deviation_powers: Annotated[IntArray, Spec("deviation_powers")]


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
    if phase in {0, _LAST_PHASE}:
        return 0
    return 1 + n_columns * (_POWERS.size if phase in _COUNTS else 1)


class MomentsParty(PartyRole[Params, AddUp]):
    """Adds its share, and reads each total when it comes back."""

    def takes_part(self, context: PartyContext, task: type[Record]) -> bool:
        """Return whether the column group is large enough for masked sums."""
        return context.session.layout.adds_up(context.slot.column)

    def reply(self, context: PartyContext, task: AddUp, data: DataSource) -> Reply:
        """Return the masked share of the phase in hand."""
        before = context.memory.get(PartialMoments)
        if task.phase != (1 if before is None else before.phase + 1):
            raise ProtocolFailed("The analyst asks for a phase out of order.")
        known = _learn(context, task) if task.phase > 1 else _nothing_yet(context)
        if task.phase == _LAST_PHASE:
            outcome = _pool_moments(context, task, known)
            own = measure(data, moments=True, ranges=False)
            doubts = other_units.ask(context, data.columns, own, outcome)
            remember = [known, outcome]
            return Reply(contribution=no_share(), remember=remember, doubts=doubts)
        words = _share(context, task.phase, known, data)
        of = _sum_of(context, task.phase, context.transcript)
        shared = share(context, words, of, "column")
        return Reply(contribution=Share(words=shared), remember=[known])


def _nothing_yet(context: PartyContext) -> PartialMoments:
    none = np.empty(0, dtype=np.int64)
    return PartialMoments(
        phase=1,
        transcript=context.transcript,
        powers=none,
        mean=np.empty(0),
        deviation_powers=none,
    )


def _learn(context: PartyContext, asked: AddUp) -> PartialMoments:
    """Return what is known with the total of the phase before."""
    before = context.recall(PartialMoments)
    total = _read(context, asked, before)
    learnt: dict[str, object] = {
        "phase": asked.phase,
        "transcript": context.transcript,
    }
    if asked.phase == 2:
        learnt["powers"] = _largest_power(total)
    elif asked.phase == 3:
        values = _build_encoding(context, before.powers).decode(total)
        learnt["mean"] = values / n_rows(context)
    elif asked.phase == 4:
        learnt["deviation_powers"] = _largest_power(total)
    return PartialMoments.model_validate(dict(before) | learnt)


def _pool_moments(
    context: PartyContext, asked: AddUp, known: PartialMoments
) -> PooledMoments:
    before = context.recall(PartialMoments)
    squares = _build_encoding(context, 2 * known.deviation_powers)
    total = _read(context, asked, before)
    deviations = np.maximum(squares.decode(total), 0.0)
    # The mean is known to half a unit, or to its last digit: less spread is none.
    last_digit = 4.0 * np.finfo(np.float64).eps * np.abs(known.mean)
    step = np.maximum(1.0 / _build_encoding(context, known.powers).unit, last_digit)
    constant = deviations <= n_rows(context) * np.square(step)
    return PooledMoments(
        n_rows=n_rows(context),
        mean=known.mean,
        deviations=np.where(constant, 0.0, deviations),
        minimum=np.empty(0),
        maximum=np.empty(0),
    )


def _share(
    context: PartyContext, phase: int, known: PartialMoments, data: DataSource
) -> WordArray:
    if phase == 1:  # deviations may be twice as large
        nothing = np.zeros(len(data.columns))
        return _power_counts(data, nothing, HIGHEST_POWER - 1)
    if phase == 3:
        return _power_counts(data, known.mean, HIGHEST_POWER)
    if phase == 2:
        return _sum_of_units(context, data, known.powers, None)
    return _sum_of_units(context, data, 2 * known.deviation_powers, known.mean)


def _power_counts(data: DataSource, mean: FloatArray, most: int) -> WordArray:
    """Return, per feature, a one at the power of two that bounds all |x - mean|."""
    largest = np.zeros(len(data.columns))
    for batch in data.batches():
        np.maximum(largest, np.abs(batch - mean).max(axis=0), out=largest)
    powers = np.maximum(np.frexp(largest)[1], LOWEST_POWER)
    if (powers > most).any():
        beyond = np.array(data.columns)[powers > most]
        raise InvalidData(f"Values of 2^62 and more, in {', '.join(beyond)}.")
    powers = np.where(largest == 0.0, LOWEST_POWER, powers)
    counts = (powers[:, None] == _POWERS).astype(np.uint64)
    return np.ascontiguousarray(counts.reshape(-1))


def _sum_of_units(
    context: PartyContext, data: DataSource, powers: IntArray, mean: FloatArray | None
) -> WordArray:
    """Return Σ round(x · unit), or of squared deviations from a mean, per feature.

    Raises :class:`ProtocolFailed` where a value of this party's own exceeds the pooled
    power of two: it was counted, so the total that says otherwise is not the members'.
    """
    encoding, most = _build_encoding(context, powers), 2.0 ** powers.astype(np.float64)
    total = np.zeros(len(data.columns), dtype=np.int64)
    for batch in data.batches():
        terms = batch if mean is None else np.square(batch - mean)
        if (np.abs(terms) > most).any():
            raise ProtocolFailed("The pooled bound is below values of this party.")
        total += np.rint(terms * encoding.unit).astype(np.int64).sum(axis=0)
    return total.view(np.uint64)


def _build_encoding(context: PartyContext, powers: IntArray) -> FixedPoint:
    return FixedPoint.of(n_rows(context) * 2.0 ** powers.astype(np.float64))


def _largest_power(total: WordArray) -> IntArray:
    """Return the largest power of two that a member counted, per feature."""
    counts = total.reshape(-1, _POWERS.size)
    highest = _POWERS.size - 1 - np.argmax(counts[:, ::-1] > 0, axis=1)
    return np.asarray(_POWERS[highest], dtype=np.int64)


def _read(context: PartyContext, asked: AddUp, before: PartialMoments) -> WordArray:
    width = context.session.member(context.slot.name).n_columns
    asked.require({"before": _n_words(asked.phase - 1, width)})
    of = _sum_of(context, asked.phase - 1, before.transcript)
    return read(
        context,
        asked.total,
        of,
        "column",
        partial(_fits, context, asked.phase - 1, before),
    )


def _fits(
    context: PartyContext, phase: int, before: PartialMoments, words: WordArray
) -> bool:
    """Return whether the total of a phase is one that members can have sent."""
    n_members = len(members(context))
    if phase in _COUNTS:  # in Python's integers: words would wrap around
        counts: list[list[int]] = words.reshape(-1, _POWERS.size).tolist()
        return all(max(row) <= n_members == sum(row) for row in counts)
    if phase == 2:
        return _build_encoding(context, before.powers).fits(words)
    squares = _build_encoding(context, 2 * before.deviation_powers)
    return squares.fits(words) and bool((words.view(np.int64) >= 0).all())


def _sum_of(context: PartyContext, phase: int, transcript: str) -> MaskedSum:
    return MaskedSum(
        members=members(context), name=f"phase-{phase}", transcript=transcript
    )


def stage() -> Stage:
    """Return the stage; it needs the secrets of column groups."""
    return Stage(
        name=NAME,
        analyst=lambda: PhasesAnalyst(_LAST_PHASE, _list_groups, _width),
        party=MomentsParty,
        exchanges=(exchange(_LAST_PHASE),),
    )
