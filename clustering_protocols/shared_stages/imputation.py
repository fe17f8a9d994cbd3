"""Stage: compute the values that fill gaps in a column group's fields, by checked sums.

The parties of a column group add up counts, sums and histograms of their values as
checked blind sums. No party sees another's numbers, and the analyst cannot read any. If
there are only two parties, each can subtract its own numbers from the total; the terms
list this risk. A party that is alone in its column group computes the values by itself.

| round | task → contribution: masked share |
|---|---|
| 1 | `add-up` → `share`: counts, magnitudes, histograms |
| 2 | `add-up` → `share`: sums of values, histograms of the two middle bins |
| 3 | `add-up` → `share`, empty: the total gives the filling values |

All sums are sums of integers: counts, and values in fixed point. So the result does not
depend on how rows are split among parties and batches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Final, NamedTuple

import numpy as np

from clustering_protocols.common.errors import GuardRefused
from clustering_protocols.contract import PartyContext, SessionContext, Stage
from clustering_protocols.contract.party import Memory
from clustering_protocols.numerics.data_source import DataSource, MappedRows
from clustering_protocols.records.arrays import FloatArray, IntArray, Spec, WordArray
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.fixed_point import FixedPoint
from clustering_protocols.shared_stages.masked_sums import CheckedSum
from clustering_protocols.shared_stages.site_effects import SiteEffects, harmonise
from clustering_protocols.shared_stages.statistics.powers import (
    PowerCounts,
    powers_of_two,
    sum_in_units,
)
from clustering_protocols.shared_stages.sums import (
    Findings,
    RowsSummed,
    Sum,
    SumProgram,
    Sums,
    column_group_members,
    n_group_rows,
)
from clustering_protocols.terms.preparation import ColumnPlan, Fill

NAME = "filling"
_LEAST_MEMBERS: Final = 2
_Add = Callable[[IntArray, FloatArray], None]


class Fillings(Record):
    """Memory: the value that fills the gaps of each field, in the plan's order.

    n_values: the number of values that the parties counted in the sums.
    n_own: the number of this party's own values, even if it left them out of the sums.
    """

    kind = "fillings"

    instead: Annotated[FloatArray, Spec("fills")]
    n_values: Annotated[IntArray, Spec("fills", low=0)]
    n_own: Annotated[IntArray, Spec("fills", low=0)]


class FilledGaps(NamedTuple):
    """The value that fills the gaps of each column (m,), and the numbers of gaps.

    n_own, n_foreign: int64 (m,); gaps in this party's rows, and in those of the others.
    """

    fills: FloatArray
    n_own: IntArray
    n_foreign: IntArray


def find_filled_gaps(context: PartyContext) -> FilledGaps | None:
    """Return the filled gaps of each numeric column.

    The result is None if no gaps are filled, or if site effects are removed from the
    filled values.
    """
    plan = context.session.terms.plan(context.slot.name)
    fillings = context.memory.get(Fillings)
    if plan is None or fillings is None or plan.harmonised.any():
        return None
    n_own_rows = context.session.n_rows(context.slot.name)
    n_counted = np.where(fillings.n_own >= _minimum_values(context), fillings.n_own, 0)
    n_foreign = n_group_rows(context) - n_own_rows - (fillings.n_values - n_counted)
    width = len(plan.columns)
    gaps = FilledGaps(
        np.zeros(width), np.zeros(width, np.int64), np.zeros(width, np.int64)
    )
    for number, fill in enumerate(plan.fills):
        if fill.name in plan.columns:
            column = plan.columns.index(fill.name)
            gaps.fills[column] = fillings.instead[number]
            gaps.n_own[column] = n_own_rows - fillings.n_own[number]
            gaps.n_foreign[column] = n_foreign[number]
    return gaps


def prepare_rows(plan: ColumnPlan, data: DataSource, memory: Memory) -> DataSource:
    """Return the columns to cluster, prepared as far as the session has come.

    Before the filling values are computed, the rows hold the values of the fields, with
    gaps. Before site effects are removed, the columns of covariates follow the others.
    """
    fillings, effects = memory.get(Fillings), memory.get(SiteEffects)
    if plan.fills and fillings is None:
        # The final column names are used because parties have to compare them earlier.
        return MappedRows(data, plan.columns, plan.take_logarithms)
    filled = np.empty(0) if fillings is None else fillings.instead

    def prepare(batch: FloatArray) -> FloatArray:
        columns = plan.prepare(plan.take_logarithms(batch), filled)
        return columns if effects is None else harmonise(plan, columns, effects)

    return MappedRows(data, plan.columns, prepare)


def find_fillings(context: PartyContext, data: DataSource) -> Sums[Findings]:
    """Compute the value that fills the gaps of each field, over all rows of the group.

    Raises GuardRefused if a field has so few values that this value could reveal a row.
    """
    plan = context.session.terms.plans[context.slot.column]
    poolings = [pooling_of(fill) for fill in plan.fills]
    columns = [pooling.fill.place for pooling in poolings]
    minimum = context.session.terms.guards.minimum_rows
    alone = len(column_group_members(context)) < _LEAST_MEMBERS
    own_minimum = _minimum_values(context)

    def tally(adds: Sequence[_Add], sum_index: int) -> IntArray:
        sizes = [pooling.n_words[sum_index] for pooling in poolings]
        return _sum_own_numbers(data, columns, adds, sizes, own_minimum)

    def split(words: WordArray, sum_index: int) -> list[IntArray]:
        sizes = [pooling.n_words[sum_index] for pooling in poolings]
        return np.split(words.view(np.int64), np.cumsum(sizes)[:-1])

    def first_sums_fit(words: WordArray) -> bool:
        n, n_members = n_group_rows(context), len(column_group_members(context))
        pairs = zip(poolings, split(words, 0), strict=True)
        return all(pooling.fits_first(first, n, n_members) for pooling, first in pairs)

    def second_sums_fit(words: WordArray) -> bool:
        triples = zip(poolings, first_sums, split(words, 1), strict=True)
        return all(pooling.fits_second(*sums) for pooling, *sums in triples)

    first_sums = yield from Sum(
        "filling-1",
        local=lambda: tally([p.add_to_first_sum for p in poolings], 0),
        fits=first_sums_fit,
        decode=lambda words: split(words, 0),
        remember=lambda: [] if alone else [RowsSummed()],
    )
    n_values = [p.count(first) for p, first in zip(poolings, first_sums, strict=True)]
    for pooling, n in zip(poolings, n_values, strict=True):
        if n < minimum:
            raise GuardRefused(
                f"All parties together have fewer than {minimum} values of "
                f"{pooling.fill.name!r}: too few to impute missing values with. Leave the field out."
            )
    add_to_second_sums = [pooling.add_to_second_sum for pooling in poolings]
    second_sums = yield from Sum(
        "filling-2",
        local=lambda: tally(list(map(partial, add_to_second_sums, first_sums)), 1),
        fits=second_sums_fit,
        decode=lambda words: split(words, 1),
    )
    triples = zip(poolings, first_sums, second_sums, strict=True)
    fillings = Fillings(
        instead=np.array([pooling.fill_value(*sums) for pooling, *sums in triples]),
        n_values=np.array(n_values),
        n_own=_count_values(data, columns),
    )
    return Findings([fillings])


def _minimum_values(context: PartyContext) -> int:
    """Return how many values of a field a party must have to take part in its sums."""
    alone = len(column_group_members(context)) < _LEAST_MEMBERS
    return 1 if alone else context.session.terms.guards.minimum_rows


def _count_values(data: DataSource, columns: Sequence[int]) -> IntArray:
    n_values = np.zeros(len(columns), dtype=np.int64)
    for batch in data.batches():
        n_values += np.count_nonzero(~np.isnan(batch[:, columns]), axis=0)
    return n_values


def _sum_own_numbers(
    data: DataSource,
    columns: Sequence[int],
    adds: Sequence[_Add],
    sizes: Sequence[int],
    minimum: int,
) -> IntArray:
    """Return the numbers that a party adds to a sum, concatenated over the fields.

    A party with fewer than ``minimum`` values of a field adds none of them, because the
    others could find these few by subtracting their own values from the total.
    """
    n_values = _count_values(data, columns)
    numbers = [np.zeros(size, dtype=np.int64) for size in sizes]
    for own, add in zip(numbers, adds, strict=True):
        add(own, np.empty(0))  # without values, a mean counts the smallest power of two
    for batch in data.batches():
        for own, add, column, n in zip(numbers, adds, columns, n_values, strict=True):
            if n >= minimum:
                values = batch[:, column]
                add(own, values[~np.isnan(values)])
    return np.concatenate(numbers)


def _groups_with_fills(session: SessionContext) -> list[tuple[str, ...]]:
    groups = zip(session.layout.column_groups, session.terms.plans, strict=True)
    return [group for group, plan in groups if plan.fills]


def _sum_sizes(session: SessionContext, slot: str) -> list[int]:
    fills = session.terms.plans[session.layout.slot(slot).column].fills
    return [sum(pooling_of(fill).n_words[index] for fill in fills) for index in (0, 1)]


def build_stage() -> Stage:
    """Return the stage, which needs the secrets of column groups."""
    return SumProgram(
        NAME,
        2,
        find_fillings,
        _sum_sizes,
        _groups_with_fills,
        hiding=lambda _: CheckedSum(scope="column", minimum_members=_LEAST_MEMBERS),
        alone_below=_LEAST_MEMBERS,
    ).build_stage()


BINS: Final = 1024
"""Bins per histogram; two nested histograms find a median to 2^-20 of the range."""

_POWERS: Final = PowerCounts()


@dataclass(frozen=True)
class PooledFilling(ABC):
    """Computes the value that fills the gaps of a field from two sums over its values.

    A party's numbers for a sum start at zero, and each batch of values updates them.
    """

    fill: Fill

    @property
    @abstractmethod
    def n_words(self) -> tuple[int, int]:
        """Return the number of elements of the first and of the second sum."""

    @abstractmethod
    def add_to_first_sum(self, numbers: IntArray, values: FloatArray) -> None:
        """Add a batch of values (n,) without NaN to a party's numbers for the first sum."""

    def add_to_second_sum(  # noqa: B027  a filling may need only one sum
        self, first: IntArray, numbers: IntArray, values: FloatArray
    ) -> None:
        """Add a batch of values (n,) to the numbers for the second sum, if it needs one.

        first: the total of the first sum.
        """

    def count(self, first: IntArray) -> int:
        """Return the number of values, read from the total of the first sum."""
        return int(first.sum())

    def fits_first(self, first: IntArray, n_rows: int, n_members: int) -> bool:
        """Return whether ``first`` is possible for members with n_rows rows in all."""
        return _are_counts(first, n_rows)

    @abstractmethod
    def fits_second(self, first: IntArray, second: IntArray) -> bool:
        """Return whether the total of the second sum is consistent with the first."""

    @abstractmethod
    def fill_value(self, first: IntArray, second: IntArray) -> float:
        """Compute the value that fills the gaps from the totals of both sums."""


class _Mean(PooledFilling):
    """The mean of the values.

    The first sum holds the number of values and the powers of two that bound the values
    of each party. The second sum is the sum of the values.
    """

    n_words = (1 + _POWERS.n_words, 1)

    def add_to_first_sum(self, numbers: IntArray, values: FloatArray) -> None:
        largest = np.abs(values).max(initial=0.0, keepdims=True)
        if numbers[
            1:
        ].any():  # half the bound of earlier batches represents their values
            np.maximum(largest, self._value_bound(numbers) / 2, out=largest)
        numbers[0] += len(values)
        numbers[1:] = _POWERS.count(largest, [self.fill.name])

    def add_to_second_sum(
        self, first: IntArray, numbers: IntArray, values: FloatArray
    ) -> None:
        unit = self._sum_encoding(first).unit
        numbers += sum_in_units(values[:, None], unit, self._value_bound(first))

    def _sum_encoding(self, first: IntArray) -> FixedPoint:
        return FixedPoint.of(max(1, self.count(first)) * self._value_bound(first))

    def _value_bound(self, first: IntArray) -> FloatArray:
        """Return the power of two (1,) that bounds every value."""
        return powers_of_two(_POWERS.largest_powers(first[1:]))

    def count(self, first: IntArray) -> int:
        return int(first[0])

    def fits_first(self, first: IntArray, n_rows: int, n_members: int) -> bool:
        one_each = _POWERS.fits(first[1:], n_members)
        return one_each and 0 <= self.count(first) <= n_rows

    def fits_second(self, first: IntArray, second: IntArray) -> bool:
        return self._sum_encoding(first).fits(second.view(np.uint64))

    def fill_value(self, first: IntArray, second: IntArray) -> float:
        total = self._sum_encoding(first).decode(second.view(np.uint64))
        return float(total[0]) / self.count(first)


class _Median(PooledFilling):
    """The median, to 2^-20 of the dictionary's range; exact for integers in small ranges.

    The first sum is a histogram of the range with 1,024 bins. The second divides the bins
    of the two middle values into 1,024 bins each. The median is the mean of the two middle
    values, which are the same if the number of values is odd.
    """

    n_words = (BINS, 2 * BINS)

    def _locate_in_parts(self, values: FloatArray) -> tuple[FloatArray, IntArray]:
        """Return the position of each value, in bin widths, and the number of its bin."""
        position = (values - self.fill.low) / (self.fill.high - self.fill.low) * BINS
        return position, _bin_positions(position)

    def add_to_first_sum(self, numbers: IntArray, values: FloatArray) -> None:
        numbers += np.bincount(self._locate_in_parts(values)[1], minlength=BINS)

    def add_to_second_sum(
        self, first: IntArray, numbers: IntArray, values: FloatArray
    ) -> None:
        position, parts = self._locate_in_parts(values)
        ranks = self._middle_ranks(first)
        for counts, (part, _) in zip(numbers.reshape(2, BINS), ranks, strict=True):
            fine = _bin_positions((position[parts == part] - part) * BINS)
            np.add(counts, np.bincount(fine, minlength=BINS), out=counts)

    def _middle_ranks(self, first: IntArray) -> list[tuple[int, int]]:
        """Return the bin of each middle value, and the value's rank in this bin."""
        count, below = self.count(first), np.concatenate([[0], np.cumsum(first)])
        ranks = []
        for rank in ((count - 1) // 2, count // 2):
            part = int(np.searchsorted(below, rank, side="right")) - 1
            ranks.append((part, rank - int(below[part])))
        return ranks

    def fits_second(self, first: IntArray, second: IntArray) -> bool:
        pairs = zip(self._middle_ranks(first), second.reshape(2, BINS), strict=True)
        return all(
            _are_counts(counts, int(first[part])) and counts.sum() == first[part]
            for (part, _), counts in pairs
        )

    def fill_value(self, first: IntArray, second: IntArray) -> float:
        low, high = self.fill.low, self.fill.high
        is_exact = self.fill.whole and high - low < BINS**2
        middles = []
        pairs = zip(self._middle_ranks(first), second.reshape(2, BINS), strict=True)
        for (part, rank), counts in pairs:
            fine = int(np.searchsorted(np.cumsum(counts), rank, side="right"))
            middle = low + (part + (fine + 0.5) / BINS) / BINS * (high - low)
            middles.append(float(np.rint(middle)) if is_exact else middle)
        return sum(middles) / 2


def _bin_positions(position: FloatArray) -> IntArray:
    """Return the bin of each position; outliers are counted in the first or last bin."""
    return np.clip(np.floor(position).astype(np.int64), 0, BINS - 1)


class _MostFrequent(PooledFilling):
    """The most frequent level; of equally frequent levels, the first in the ranking."""

    @property
    def n_words(self) -> tuple[int, int]:
        return len(self.fill.ranking), 0

    def add_to_first_sum(self, numbers: IntArray, values: FloatArray) -> None:
        numbers += np.bincount(values.astype(np.int64), minlength=len(numbers))

    def fits_second(self, first: IntArray, second: IntArray) -> bool:
        return not second.size

    def fill_value(self, first: IntArray, second: IntArray) -> float:
        return float(max(self.fill.ranking, key=lambda level: int(first[level])))


def _are_counts(numbers: IntArray, total: int) -> bool:
    """Return whether all numbers are non-negative and their sum is at most ``total``."""
    counts: list[int] = numbers.tolist()  # Python integers, whose sum cannot overflow
    return min(counts) >= 0 and sum(counts) <= total


_POOLINGS: Final[Mapping[str, Callable[[Fill], PooledFilling]]] = {
    "mean": _Mean,
    "median": _Median,
    "most_frequent": _MostFrequent,
}


def pooling_of(fill: Fill) -> PooledFilling:
    """Return the object that computes a mean, a median or the most frequent level."""
    return _POOLINGS[fill.how](fill)
