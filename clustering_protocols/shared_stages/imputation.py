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

What is added up are whole numbers: counts, and values in units of a fixed point. So the
outcome does not depend on how rows are cut into parties and batches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

import numpy as np

from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.contract import PartyContext, SessionContext, Stage
from clustering_protocols.contract.party import Memory
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.records.arrays import FloatArray, IntArray, Spec, WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.fixed_point import FixedPoint
from clustering_protocols.shared_stages.masked_sums import CheckedSum
from clustering_protocols.shared_stages.site_effects import HarmonisedRows, SiteEffects
from clustering_protocols.shared_stages.statistics.powers import (
    PowerCounts,
    bound_of,
    count_units,
)
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
    Fill,
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
    """Return the filled gaps of each column that is a number; None where none is.

    None too where site effects were taken out: nothing that was filled stands there.
    """
    plan = context.session.terms.plan(context.slot.name)
    fillings = context.memory.get(Fillings)
    if plan is None or fillings is None or plan.harmonised.any():
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

    Until then as their party has them. Until site effects are known, where these are
    taken out, the columns of covariates stand behind the others.
    """
    fillings, effects = memory.get(Fillings), memory.get(SiteEffects)
    if plan.fills and fillings is None:
        return ObservedRows(data, plan)
    filled = np.empty(0) if fillings is None else fillings.instead
    if effects is None:
        return PreparedRows(data, plan, filled)
    return HarmonisedRows(data, plan, filled, effects)


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


def stage() -> Stage:
    """Return the stage; it needs the secrets of column groups."""
    return SumProgram(
        NAME,
        2,
        find_fillings,
        _sizes,
        _groups,
        hiding=lambda _: CheckedSum(scope="column", minimum_members=_LEAST_MEMBERS),
        alone_below=_LEAST_MEMBERS,
    ).stage()


BINS: Final = 1024
"""Of a histogram; two of them find a median to 2^-20 of the dictionary's range."""

_POWERS: Final = PowerCounts()


class Tally(ABC):
    """Numbers of one party that are added up over all, from its values batch by batch."""

    @abstractmethod
    def see(self, values: FloatArray) -> None:
        """Count values (n,), none of them missing."""

    @property
    @abstractmethod
    def numbers(self) -> IntArray:
        """Return what is added up."""


@dataclass(frozen=True)
class PooledFilling(ABC):
    """How one field's filling value is pooled."""

    fill: Fill

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, int]:
        """Return how many numbers the first and the second sum have."""

    @abstractmethod
    def first(self) -> Tally:
        """Return what counts for the first sum."""

    @abstractmethod
    def second(self, first: IntArray) -> Tally | None:
        """Return what counts for the second, given the first; None if it needs none."""

    @abstractmethod
    def count(self, first: IntArray) -> int:
        """Return how many values there are, given the first sum."""

    @abstractmethod
    def fits(self, first: IntArray, n_rows: int, n_members: int) -> bool:
        """Return whether a first sum is one that members with so many rows can make."""

    @abstractmethod
    def fits_second(self, first: IntArray, second: IntArray) -> bool:
        """Return whether a second sum is one of the values that the first has counted."""

    @abstractmethod
    def value(self, first: IntArray, second: IntArray) -> float:
        """Return what fills the gaps."""


class _Powers(Tally):
    """How many values there are, and a one at the power of two that bounds them all."""

    def __init__(self, name: str) -> None:
        self._name, self._count, self._largest = name, 0, 0.0

    def see(self, values: FloatArray) -> None:
        self._count += len(values)
        self._largest = max(self._largest, float(np.abs(values).max(initial=0.0)))

    @property
    def numbers(self) -> IntArray:
        powers = _POWERS.count(np.array([self._largest]), [self._name])
        return np.append(self._count, powers)


class _Units(Tally):
    """The sum of values in units of a fixed point."""

    def __init__(self, encoding: FixedPoint, most: FloatArray) -> None:
        self._encoding, self._most = encoding, most
        self._total = np.zeros(1, dtype=np.int64)

    def see(self, values: FloatArray) -> None:
        self._total += count_units(values[:, None], self._encoding.unit, self._most)

    @property
    def numbers(self) -> IntArray:
        return self._total


class Mean(PooledFilling):
    """The mean, over all values that are there."""

    @property
    def sizes(self) -> tuple[int, int]:
        """Return the size of count and powers, and of a sum."""
        return 1 + _POWERS.size, 1

    def first(self) -> Tally:
        """Count values and their magnitude."""
        return _Powers(self.fill.name)

    def second(self, first: IntArray) -> Tally | None:
        """Add up values, within the bound that the parties have counted."""
        return _Units(self._build_encoding(first), self._most(first))

    def _build_encoding(self, first: IntArray) -> FixedPoint:
        return FixedPoint.of(max(1, self.count(first)) * self._most(first))

    def _most(self, first: IntArray) -> FloatArray:
        """Return the power of two that bounds every value (1,)."""
        return bound_of(_POWERS.largest(first[1:]))

    def count(self, first: IntArray) -> int:
        """Return the number of values."""
        return int(first[0])

    def fits(self, first: IntArray, n_rows: int, n_members: int) -> bool:
        """Return whether each member counted one power, and no more values than rows."""
        one_each = _POWERS.fits(first[1:], n_members)
        return one_each and 0 <= self.count(first) <= n_rows

    def fits_second(self, first: IntArray, second: IntArray) -> bool:
        """Return whether the sum is no larger than that many of the largest values."""
        return self._build_encoding(first).fits(second.view(np.uint64))

    def value(self, first: IntArray, second: IntArray) -> float:
        """Return the sum over the number of values."""
        total = self._build_encoding(first).decode(second.view(np.uint64))
        return float(total[0]) / self.count(first)


@dataclass(frozen=True, slots=True)
class _RangeScale:
    """A range in 1,024 parts, and each of these in 1,024 again."""

    low: float
    high: float

    def _position(self, values: FloatArray) -> FloatArray:
        return (values - self.low) / (self.high - self.low) * BINS

    def part(self, values: FloatArray) -> IntArray:
        """Return in which part each value lies."""
        found = np.floor(self._position(values)).astype(np.int64)
        return np.clip(found, 0, BINS - 1)

    def part_within(self, values: FloatArray, begin: int) -> IntArray:
        """Return in which part of a part each value lies."""
        within = (self._position(values) - begin) * BINS
        return np.clip(np.floor(within).astype(np.int64), 0, BINS - 1)

    def middle(self, begin: int, within: int) -> float:
        """Return the middle of a part of a part."""
        place = (begin + (within + 0.5) / BINS) / BINS
        return self.low + place * (self.high - self.low)


class _Histogram(Tally):
    """How many values lie in each part of each of some ranges."""

    def __init__(self, scale: _RangeScale, begins: IntArray | None = None) -> None:
        self._scale, self._begins = scale, begins
        self._counts = np.zeros((1 if begins is None else len(begins), BINS), np.int64)

    def see(self, values: FloatArray) -> None:
        if self._begins is None:
            self._counts[0] += np.bincount(self._scale.part(values), minlength=BINS)
            return
        coarse = self._scale.part(values)
        for place, begin in enumerate(self._begins):
            fine = self._scale.part_within(values[coarse == begin], int(begin))
            self._counts[place] += np.bincount(fine, minlength=BINS)

    @property
    def numbers(self) -> IntArray:
        return self._counts.reshape(-1)


class _CountedLevels(PooledFilling):
    """A filling whose first sum are counts of values that exclude each other."""

    def count(self, first: IntArray) -> int:
        """Return the number of values."""
        return int(first.sum())

    def fits(self, first: IntArray, n_rows: int, n_members: int) -> bool:
        """Return whether there are no more values than rows."""
        return _counts(first, n_rows)


class Median(_CountedLevels):
    """The median, to 2^-20 of the dictionary's range; exact for integers in small ranges.

    Both middle values are looked up: of an even number of values the median is their
    mean, and may lie where there is none.
    """

    @property
    def sizes(self) -> tuple[int, int]:
        """Return the sizes of a histogram, and of two."""
        return BINS, 2 * BINS

    @property
    def _scale(self) -> _RangeScale:
        return _RangeScale(self.fill.low, self.fill.high)

    def first(self) -> Tally:
        """Count values in the parts of the range."""
        return _Histogram(self._scale)

    def second(self, first: IntArray) -> Tally | None:
        """Count values in the parts of those parts in which the middle values lie."""
        return _Histogram(self._scale, np.array([b for b, _ in self._middles(first)]))

    def _middles(self, first: IntArray) -> list[tuple[int, int]]:
        """Return part and rank therein of both middle values."""
        count, below = self.count(first), np.concatenate([[0], np.cumsum(first)])
        found = []
        for rank in ((count - 1) // 2, count // 2):
            part = int(np.searchsorted(below, rank, side="right")) - 1
            found.append((part, rank - int(below[part])))
        return found

    def fits_second(self, first: IntArray, second: IntArray) -> bool:
        """Return whether each part holds as many values as were counted in it."""
        pairs = zip(self._middles(first), second.reshape(2, BINS), strict=True)
        return all(
            _counts(counts, int(first[part])) and int(counts.sum()) == int(first[part])
            for (part, _), counts in pairs
        )

    def value(self, first: IntArray, second: IntArray) -> float:
        """Return the mean of both middle values."""
        middles = []
        pairs = zip(self._middles(first), second.reshape(2, BINS), strict=True)
        for (part, rank), counts in pairs:
            within = int(np.searchsorted(np.cumsum(counts), rank, side="right"))
            found = self._scale.middle(part, within)
            fine = self.fill.whole and self.fill.high - self.fill.low < BINS**2
            middles.append(float(np.rint(found)) if fine else found)
        return sum(middles) / 2


class _Levels(Tally):
    """How many rows have each level."""

    def __init__(self, n_levels: int) -> None:
        self._counts = np.zeros(n_levels, dtype=np.int64)

    def see(self, values: FloatArray) -> None:
        levels = values.astype(np.int64)
        self._counts += np.bincount(levels, minlength=len(self._counts))

    @property
    def numbers(self) -> IntArray:
        return self._counts


class MostFrequent(_CountedLevels):
    """The most frequent level; of several the lowest."""

    @property
    def sizes(self) -> tuple[int, int]:
        """Return the number of levels; nothing more is needed."""
        return len(self.fill.ranking), 0

    def first(self) -> Tally:
        """Count rows of each level."""
        return _Levels(len(self.fill.ranking))

    def second(self, first: IntArray) -> Tally | None:
        """Return nothing."""
        return None

    def fits_second(self, first: IntArray, second: IntArray) -> bool:
        """Return whether there is none."""
        return not second.size

    def value(self, first: IntArray, second: IntArray) -> float:
        """Return the place of the level."""
        return float(max(self.fill.ranking, key=lambda place: int(first[place])))


def _counts(numbers: IntArray, most: int) -> bool:
    """Return whether these are counts of at most so many (in Python: they may wrap)."""
    found: list[int] = numbers.tolist()
    return min(found) >= 0 and sum(found) <= most


_POOLINGS: Final[Mapping[str, Callable[[Fill], PooledFilling]]] = {
    "mean": Mean,
    "median": Median,
    "most_frequent": MostFrequent,
}


def pooling_of(fill: Fill) -> PooledFilling:
    """Return how a field's filling value is pooled."""
    return _POOLINGS[fill.how](fill)
