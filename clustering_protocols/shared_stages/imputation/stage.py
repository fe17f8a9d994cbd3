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

from collections.abc import Callable, Sequence
from typing import Annotated, Final

import numpy as np

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
from clustering_protocols.shared_stages.imputation.pooling import (
    PooledFilling,
    Tally,
    pooling_of,
)
from clustering_protocols.shared_stages.masked_sums import MaskedSum, read, share
from clustering_protocols.shared_stages.secrets import group_of
from clustering_protocols.shared_stages.sum_stage import (
    AddUp,
    PhasesAnalyst,
    Share,
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


class PartialFillings(Record):
    """Memory: where the sums stand.

    first: the total of the first sum. own: what a party that is alone would have sent.
    """

    kind = "partial-fillings"

    phase: int
    transcript: str
    first: Annotated[IntArray, Spec("first")]
    own: Annotated[IntArray, Spec("own")]


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
    columns = range(session.layout.n_column_groups)
    return [
        session.layout.column_group(column)
        for column, plan in zip(columns, session.terms.plans, strict=True)
        if plan.fills
    ]


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
        before = context.memory.get(PartialFillings)
        if task.phase != (1 if before is None else before.phase + 1):
            raise ProtocolFailed("The analyst asks for a phase out of order.")
        poolings = _poolings(context)
        first = np.empty(0, dtype=np.int64)
        if before is None:
            tallies: list[Tally | None] = [pooling.first() for pooling in poolings]
        elif before.phase == 1:
            first = _first_total(context, task, before, poolings)
            pairs = zip(poolings, _parts(first, poolings, 0), strict=True)
            tallies = [pooling.second(part) for pooling, part in pairs]
        else:
            second = _second_total(context, task, before, poolings)
            found = Fillings(instead=_values(poolings, before.first, second))
            return Reply(contribution=no_share(), remember=[found])
        least = context.session.terms.guards.minimum_rows
        if _is_alone(context):
            least = 1
        own = _count_tallies(tallies, poolings, data, least)
        return _answer(context, task.phase, first, own)


def _answer(context: PartyContext, phase: int, first: IntArray, own: IntArray) -> Reply:
    """Return a share; a party that is alone keeps its numbers and sends none."""
    alone = _is_alone(context)
    known = PartialFillings(
        phase=phase,
        transcript=context.transcript,
        first=first,
        own=own if alone else np.empty(0, dtype=np.int64),
    )
    if alone:
        return Reply(contribution=no_share(), remember=[known])
    words = share(
        context,
        own.view(np.uint64),
        _sum_of(context, phase, context.transcript),
        "column",
        minimum_members=_LEAST_MEMBERS,
    )
    return Reply(contribution=Share(words=words), remember=[known])


def _count_tallies(
    tallies: Sequence[Tally | None],
    poolings: Sequence[PooledFilling],
    data: DataSource,
    least: int,
) -> IntArray:
    """Return the numbers of all tallies.

    Of a field of which this party has fewer than ``least`` values none is added: else
    the others would read the few, whatever they have of it themselves.
    """
    places = [pooling.fill.place for pooling in poolings]
    enough = _n_values(data, places) >= least
    for batch in data.batches():
        for tally, place, adds in zip(tallies, places, enough, strict=True):
            if tally is not None and adds:
                values = batch[:, place]
                tally.see(values[~np.isnan(values)])
    none = np.empty(0, dtype=np.int64)
    return np.concatenate([none, *(t.numbers for t in tallies if t is not None)])


def _n_values(data: DataSource, places: Sequence[int]) -> IntArray:
    """Return how many values there are in each of some columns."""
    found = np.zeros(len(places), dtype=np.int64)
    for batch in data.batches():
        found += np.count_nonzero(~np.isnan(batch[:, places]), axis=0)
    return found


def _first_total(
    context: PartyContext,
    task: AddUp,
    before: PartialFillings,
    poolings: Sequence[PooledFilling],
) -> IntArray:
    """Return the first sum, if every field has values enough.

    Raises GuardRefused if one has so few that what they have in common would tell of
        single rows.
    """
    n_members = len(members(context))

    def fits(words: WordArray) -> bool:
        parts = _parts(words.view(np.int64), poolings, 0)
        pairs = zip(poolings, parts, strict=True)
        return all(
            pooling.fits(part, n_rows(context), n_members) for pooling, part in pairs
        )

    first = _total(context, task, before, fits)
    least = context.session.terms.guards.minimum_rows
    for pooling, part in zip(poolings, _parts(first, poolings, 0), strict=True):
        if pooling.count(part) < least:
            raise GuardRefused(
                f"All parties together have fewer than {least} values of "
                f"{pooling.fill.name!r}: too few to impute missing values with. Leave the field out."
            )
    return first


def _second_total(
    context: PartyContext,
    task: AddUp,
    before: PartialFillings,
    poolings: Sequence[PooledFilling],
) -> IntArray:
    """Return the second sum, of values that the first has counted."""
    counted = _parts(before.first, poolings, 0)

    def fits(words: WordArray) -> bool:
        parts = _parts(words.view(np.int64), poolings, 1)
        triples = zip(poolings, counted, parts, strict=True)
        return all(pooling.fits_second(*both) for pooling, *both in triples)

    return _total(context, task, before, fits)


def _total(
    context: PartyContext,
    task: AddUp,
    before: PartialFillings,
    fits: Callable[[WordArray], bool],
) -> IntArray:
    """Return the total of the phase before."""
    if _is_alone(context):
        return before.own
    session, slot = context.session, context.slot.name
    task.require({"before": _n_words(session, slot, before.phase)})
    of = _sum_of(context, before.phase, before.transcript)
    words = read(context, task.total, of, "column", fits)
    return words.view(np.int64)


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


def _is_alone(context: PartyContext) -> bool:
    return len(members(context)) < _LEAST_MEMBERS


def _sum_of(context: PartyContext, phase: int, transcript: str) -> MaskedSum:
    return MaskedSum(
        members=members(context), name=f"filling-{phase}", transcript=transcript
    )
