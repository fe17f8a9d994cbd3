"""Stage: what fills the gaps of a column group's fields, by checked blind sums.

Parties of a column group add up counts, values and histograms of what they have; nobody
sees another party's, and the analyst reads none at all. Of two parties each can take its
own numbers off the sum, which is a risk code. A party that is alone in its column group
adds nothing up and finds the same at home.

| round | task → contribution: masked share |
|---|---|
| 1 | `add-up` → `share`: counts, magnitudes, histograms |
| 2 | `add-up` → `share`: sums of values, histograms of the parts in the middle |
| 3 | `add-up` → `share`, empty: the fillings follow from the total |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.contract import (
    Params,
    PartyContext,
    PartyRole,
    Reply,
    SessionContext,
    Stage,
)
from clustering_protocols.contract.party import Memory
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import FloatArray, IntArray, Spec, WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.checked_sums import CheckedSum
from clustering_protocols.shared_stages.imputation.pooling import (
    PooledFilling,
    Tally,
    pooling_of,
)
from clustering_protocols.shared_stages.secrets import group_of
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
from clustering_protocols.terms.preparation import (
    ColumnPlan,
    ObservedRows,
    PreparedRows,
)

NAME = "filling"
_LAST_PHASE: Final = 3
_LEAST_MEMBERS: Final = 2


class Fillings(Record):
    """Memory: what fills the gaps of each field that has some, in the plan's order."""

    kind = "fillings"

    instead: Annotated[FloatArray, Spec("fills")]


def _no_numbers() -> IntArray:
    return np.empty(0, dtype=np.int64)


class PartialFillings(SumState):
    """Memory: the totals of both sums, as far as they are known."""

    kind = "partial-fillings"

    first: Annotated[IntArray, Spec("first")] = Field(default_factory=_no_numbers)
    second: Annotated[IntArray, Spec("second")] = Field(default_factory=_no_numbers)


def prepare_rows(plan: ColumnPlan, data: DataSource, memory: Memory) -> DataSource:
    """Return rows as the columns that are clustered, once it is known what fills gaps.

    Until then as their party has them.
    """
    found = memory.get(Fillings)
    if found is not None:
        return PreparedRows(data, plan, found.instead)
    return (
        ObservedRows(data, plan)
        if plan.fills
        else PreparedRows(data, plan, np.empty(0))
    )


def stage() -> Stage:
    """Return the stage; it needs the secrets of column groups."""
    return Stage(
        name=NAME,
        analyst=lambda: PhasesAnalyst(_LAST_PHASE, _groups, _n_words),
        party=FillingParty,
        exchanges=(exchange(_LAST_PHASE),),
    )


def _groups(session: SessionContext) -> list[tuple[str, ...]]:
    groups = zip(session.layout.column_groups, session.terms.plans, strict=True)
    return [group for group, plan in groups if plan.fills]


def _n_words(session: SessionContext, slot: str, phase: int) -> int:
    """Return the size of a phase's share: its numbers, and a tag."""
    plan = session.terms.plan(slot)
    group = group_of(session.layout, session.layout.slot(slot), "column")
    if plan is None or phase == _LAST_PHASE or len(group) < _LEAST_MEMBERS:
        return 0
    return 1 + sum(pooling_of(fill).sizes[phase - 1] for fill in plan.fills)


class FillingParty(PartyRole[Params, AddUp]):
    """Adds its share, and reads each total when it comes back."""

    def takes_part(self, context: PartyContext, task: type[Record]) -> bool:
        """Return whether the column group has gaps to be filled."""
        plan = context.session.terms.plan(context.slot.name)
        return plan is not None and bool(plan.fills)

    def reply(self, context: PartyContext, task: AddUp, data: DataSource) -> Reply:
        """Return the masked share of the phase in hand."""
        known = _SUMS.follow(context, task.phase, task, task.total)
        if task.phase < _LAST_PHASE:
            words, known = _SUMS.add(context, known, data)
            return Reply(contribution=Share(words=words), remember=[known])
        values = _values(_poolings(context), known.first, known.second)
        return Reply(
            contribution=no_share(), remember=[known, Fillings(instead=values)]
        )


def _count_first(
    context: PartyContext, _known: PartialFillings, data: DataSource
) -> WordArray:
    poolings = _poolings(context)
    return _count_tallies(context, [each.first() for each in poolings], data)


def _count_second(
    context: PartyContext, known: PartialFillings, data: DataSource
) -> WordArray:
    poolings = _poolings(context)
    pairs = zip(poolings, _parts(known.first, poolings, 0), strict=True)
    return _count_tallies(
        context, [pooling.second(part) for pooling, part in pairs], data
    )


def _count_tallies(
    context: PartyContext, tallies: Sequence[Tally | None], data: DataSource
) -> WordArray:
    """Return the numbers of all tallies.

    Of a field of which this party has fewer values than it asks for rows none is added:
    else the others would read the few, whatever they have of it themselves.
    """
    least = context.session.terms.guards.minimum_rows
    if _SUMS.is_alone(context):
        least = 1
    places = [pooling.fill.place for pooling in _poolings(context)]
    enough = _n_values(data, places) >= least
    for batch in data.batches():
        for tally, place, adds in zip(tallies, places, enough, strict=True):
            if tally is not None and adds:
                values = batch[:, place]
                tally.see(values[~np.isnan(values)])
    numbers = [tally.numbers for tally in tallies if tally is not None]
    return np.concatenate([_no_numbers(), *numbers]).view(np.uint64)


def _n_values(data: DataSource, places: Sequence[int]) -> IntArray:
    """Return how many values there are in each of some columns."""
    found = np.zeros(len(places), dtype=np.int64)
    for batch in data.batches():
        found += np.count_nonzero(~np.isnan(batch[:, places]), axis=0)
    return found


def _fits_first(
    context: PartyContext, _known: PartialFillings, words: WordArray
) -> bool:
    rows, n_members, poolings = (
        n_rows(context),
        len(members(context)),
        _poolings(context),
    )
    pairs = zip(poolings, _parts(words.view(np.int64), poolings, 0), strict=True)
    return all(pooling.fits(part, rows, n_members) for pooling, part in pairs)


def _learn_first(
    context: PartyContext, _known: PartialFillings, words: WordArray
) -> Mapping[str, object]:
    """Return the first sum, if every field has values enough.

    Raises GuardRefused if one has so few that what they have in common would tell of
        single rows.
    """
    first, poolings = words.view(np.int64), _poolings(context)
    least = context.session.terms.guards.minimum_rows
    for pooling, part in zip(poolings, _parts(first, poolings, 0), strict=True):
        if pooling.count(part) < least:
            raise GuardRefused(
                f"All parties together have fewer than {least} values of "
                f"{pooling.fill.name!r}: too few to impute missing values with. Leave the field out."
            )
    return {"first": first}


def _fits_second(
    context: PartyContext, known: PartialFillings, words: WordArray
) -> bool:
    """Return whether the second sum is of values that the first has counted."""
    poolings = _poolings(context)
    counted = _parts(known.first, poolings, 0)
    parts = _parts(words.view(np.int64), poolings, 1)
    triples = zip(poolings, counted, parts, strict=True)
    return all(pooling.fits_second(*both) for pooling, *both in triples)


def _learn_second(
    _context: PartyContext, _known: PartialFillings, words: WordArray
) -> Mapping[str, object]:
    return {"second": words.view(np.int64)}


def _values(
    poolings: Sequence[PooledFilling], first: IntArray, second: IntArray
) -> FloatArray:
    parts = zip(_parts(first, poolings, 0), _parts(second, poolings, 1), strict=True)
    pairs = zip(poolings, parts, strict=True)
    return np.array([pooling.value(*both) for pooling, both in pairs])


def _parts(
    numbers: IntArray, poolings: Sequence[PooledFilling], which: int
) -> list[IntArray]:
    """Return the numbers of each field."""
    sizes = [pooling.sizes[which] for pooling in poolings]
    return np.split(numbers, np.cumsum(sizes)[:-1])


def _poolings(context: PartyContext) -> list[PooledFilling]:
    return [pooling_of(fill) for fill in _plan(context).fills]


def _plan(context: PartyContext) -> ColumnPlan:
    plan = context.session.terms.plan(context.slot.name)
    if plan is None:
        raise ProtocolFailed("The terms impute no missing values.")
    return plan


def _share_size(context: PartyContext, known: PartialFillings) -> int:
    return _n_words(context.session, context.slot.name, known.phase)


def _choose_hiding(_context: PartyContext) -> CheckedSum:
    return CheckedSum(scope="column", minimum_members=_LEAST_MEMBERS)


_SUMS: Final = SumStage(
    name="filling-{}",
    phases=(
        Phase(_count_first, _fits_first, _learn_first),
        Phase(_count_second, _fits_second, _learn_second),
    ),
    state=PartialFillings,
    n_words=_share_size,
    hiding=_choose_hiding,
    alone_below=_LEAST_MEMBERS,
)
