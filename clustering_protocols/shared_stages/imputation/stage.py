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

from collections.abc import Sequence
from typing import Annotated, Final, NamedTuple

import numpy as np

from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.contract import PartyContext, SessionContext, Stage
from clustering_protocols.contract.party import Memory
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import FloatArray, IntArray, Spec, WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.shared_stages.imputation.pooling import (
    PooledFilling,
    Tally,
    pooling_of,
)
from clustering_protocols.shared_stages.masked_sums import CheckedSum
from clustering_protocols.shared_stages.sums import (
    Findings,
    RowsSummed,
    Sum,
    SumProgram,
    Sums,
    members,
    n_rows,
)
from clustering_protocols.terms.preparation import (
    ColumnPlan,
    ObservedRows,
    PreparedRows,
)

NAME = "filling"
_LEAST_MEMBERS: Final = 2


class Fillings(Record):
    """Memory: what fills the gaps of each field that has some, in the plan's order.

    n_values: how many values all parties have counted.
    n_own: how many of its own this party has, whether it counted them or not.
    """

    kind = "fillings"

    instead: Annotated[FloatArray, Spec("fills")]
    n_values: Annotated[IntArray, Spec("fills", low=0)]
    n_own: Annotated[IntArray, Spec("fills", low=0)]


class Gaps(NamedTuple):
    """What fills the gaps of each column (m,), and how many there are.

    own, others: int64 (m,); of this party, and of all others of its column group.
    """

    fills: FloatArray
    own: IntArray
    others: IntArray


def gaps_of(context: PartyContext) -> Gaps | None:
    """Return the filled gaps of each column that is a number; None where none is."""
    plan = context.session.terms.plan(context.slot.name)
    fillings = context.memory.get(Fillings)
    if plan is None or fillings is None:
        return None
    n_own_rows = context.session.n_rows(context.slot.name)
    counted = np.where(fillings.n_own >= _least(context), fillings.n_own, 0)
    n_others = n_rows(context) - n_own_rows - (fillings.n_values - counted)
    width = len(plan.columns)
    gaps = Gaps(np.zeros(width), np.zeros(width, np.int64), np.zeros(width, np.int64))
    for number, fill in enumerate(plan.fills):
        if fill.name in plan.columns:
            place = plan.columns.index(fill.name)
            gaps.fills[place] = fillings.instead[number]
            gaps.own[place] = n_own_rows - fillings.n_own[number]
            gaps.others[place] = n_others[number]
    return gaps


def prepare_rows(plan: ColumnPlan, data: DataSource, memory: Memory) -> DataSource:
    """Return rows as the columns that are clustered, once it is known what fills gaps.

    Until then as their party has them.
    """
    fillings = memory.get(Fillings)
    if fillings is not None:
        return PreparedRows(data, plan, fillings.instead)
    return (
        ObservedRows(data, plan)
        if plan.fills
        else PreparedRows(data, plan, np.empty(0))
    )


def find_fillings(context: PartyContext, data: DataSource) -> Sums[Findings]:
    """Find what fills the gaps of each field, over all rows of the column group.

    Raises GuardRefused if a field has so few values that what they have in common would
        tell of single rows.
    """
    poolings = [pooling_of(fill) for fill in _plan(context).fills]
    least = context.session.terms.guards.minimum_rows
    alone = len(members(context)) < _LEAST_MEMBERS
    own_least = _least(context)

    def split(words: WordArray, which: int) -> list[IntArray]:
        """Return the numbers of each field."""
        sizes = [pooling.sizes[which] for pooling in poolings]
        return np.split(words.view(np.int64), np.cumsum(sizes)[:-1])

    def counts_fit(words: WordArray) -> bool:
        n, n_members = n_rows(context), len(members(context))
        pairs = zip(poolings, split(words, 0), strict=True)
        return all(pooling.fits(part, n, n_members) for pooling, part in pairs)

    counts = yield from Sum(
        "filling-1",
        local=lambda: _tally(
            data, poolings, [pooling.first() for pooling in poolings], own_least
        ),
        fits=counts_fit,
        decode=lambda words: split(words, 0),
        remember=lambda: [] if alone else [RowsSummed()],
    )
    for pooling, count in zip(poolings, counts, strict=True):
        if pooling.count(count) < least:
            raise GuardRefused(
                f"All parties together have fewer than {least} values of "
                f"{pooling.fill.name!r}: too few to impute missing values with. Leave the field out."
            )

    def are_of_the_counted(words: WordArray) -> bool:
        triples = zip(poolings, counts, split(words, 1), strict=True)
        return all(pooling.fits_second(*both) for pooling, *both in triples)

    parts = yield from Sum(
        "filling-2",
        local=lambda: _tally(
            data,
            poolings,
            [p.second(count) for p, count in zip(poolings, counts, strict=True)],
            own_least,
        ),
        fits=are_of_the_counted,
        decode=lambda words: split(words, 1),
    )
    triples = zip(poolings, counts, parts, strict=True)
    values = np.array([pooling.value(*both) for pooling, *both in triples])
    fillings = Fillings(
        instead=values,
        n_values=np.array(
            [
                pooling.count(part)
                for pooling, part in zip(poolings, counts, strict=True)
            ]
        ),
        n_own=_count_values(data, [pooling.fill.place for pooling in poolings]),
    )
    return Findings([fillings])


def _least(context: PartyContext) -> int:
    """Return of how many values of a field a party counts any."""
    alone = len(members(context)) < _LEAST_MEMBERS
    return 1 if alone else context.session.terms.guards.minimum_rows


def _count_values(data: DataSource, places: Sequence[int]) -> IntArray:
    """Return how many values there are in each of some columns."""
    n_values = np.zeros(len(places), dtype=np.int64)
    for batch in data.batches():
        n_values += np.count_nonzero(~np.isnan(batch[:, places]), axis=0)
    return n_values


def _tally(
    data: DataSource,
    poolings: Sequence[PooledFilling],
    tallies: Sequence[Tally | None],
    least: int,
) -> IntArray:
    """Return the numbers of all tallies.

    Of a field of which this party has fewer than ``least`` values none is added: else
    the others would read the few, whatever they have of it themselves.
    """
    places = [pooling.fill.place for pooling in poolings]
    n_values = _count_values(data, places)
    for batch in data.batches():
        for tally, place, n in zip(tallies, places, n_values, strict=True):
            if tally is not None and n >= least:
                values = batch[:, place]
                tally.see(values[~np.isnan(values)])
    numbers = [tally.numbers for tally in tallies if tally is not None]
    return np.concatenate([np.empty(0, dtype=np.int64), *numbers])


def _plan(context: PartyContext) -> ColumnPlan:
    plan = context.session.terms.plan(context.slot.name)
    if plan is None:
        raise ProtocolFailed("The terms impute no missing values.")
    return plan


def _groups(session: SessionContext) -> list[tuple[str, ...]]:
    groups = zip(session.layout.column_groups, session.terms.plans, strict=True)
    return [group for group, plan in groups if plan.fills]


def _sizes(session: SessionContext, slot: str) -> list[int]:
    plan = session.terms.plan(slot)
    fills = () if plan is None else plan.fills
    return [sum(pooling_of(fill).sizes[which] for fill in fills) for which in (0, 1)]


def _hide_from_two(_context: PartyContext) -> CheckedSum:
    return CheckedSum(scope="column", minimum_members=_LEAST_MEMBERS)


def stage() -> Stage:
    """Return the stage; it needs the secrets of column groups."""
    return SumProgram(
        NAME,
        2,
        find_fillings,
        _sizes,
        _groups,
        hiding=_hide_from_two,
        alone_below=_LEAST_MEMBERS,
    ).stage()
