"""Stage: pool mean and deviation of a column group's features by blind masked sums.

No party sees the moments of another, the analyst cannot read any, and the terms need no
ranges. If there are only two parties, each can subtract its own moments from the pooled
ones; the terms list this risk. A party that is alone in its column group has no part in
the stage, and its moments are those of its rows in float64.

Since fixed-point sums need a bound, the parties first count, for each feature, the power
of two that bounds each party's values, and later the power that bounds its deviations
from the pooled mean. The parties add up squared deviations, not squared values: with mean
10^6 and deviation 1, sums of squared values would lose every digit of the deviation.

| round | task → contribution: masked share |
|---|---|
| 1 | `add-up` → `share`: powers of two of the largest values |
| 2 | `add-up` → `share`: sums of values |
| 3 | `add-up` → `share`: powers of two of the largest deviations |
| 4 | `add-up` → `share`: sums of squared deviations |
| 5 | `add-up` → `share`, empty: the last total gives the moments |

If a party receives a different total from the others, its transcript differs as well, so
its next masks do not cancel, and it signs a different transcript at the end.

All sums are sums of integers, and each value of a row is rounded once. So the sums do
not depend on how rows are split among parties and batches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final

import numpy as np

from clustering_protocols.contract import PartyContext, SessionContext, Stage
from clustering_protocols.numerics.data_source import DataSource
from clustering_protocols.numerics.moments import (
    Moments,
    PooledMoments,
    measure_moments,
)
from clustering_protocols.records.arrays import FloatArray, IntArray, Spec
from clustering_protocols.records.record import Record
from clustering_protocols.secrecy.fixed_point import FixedPoint
from clustering_protocols.shared_stages.masked_sums import CheckedSum
from clustering_protocols.shared_stages.statistics import units
from clustering_protocols.shared_stages.statistics.powers import (
    MOST_POWER,
    PowerCounts,
    powers_of_two,
    sum_in_units,
    varies,
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

NAME = "moments"
_LEAST_MEMBERS: Final = 2
_N_SUMS: Final = 4
POWERS: Final = PowerCounts(MOST_POWER + 1)
"""One power more than for values, because deviations can be twice as large."""


class PooledReach(Record):
    """Memory: the exponents of the powers of two that bound each feature's deviations."""

    kind = "pooled-reach"

    powers: Annotated[IntArray, Spec("powers")]


def pool_moments(context: PartyContext, data: DataSource) -> Sums[Findings]:
    """Pool the mean and deviation of each feature over all rows of the column group."""
    n, n_members = n_group_rows(context), len(column_group_members(context))
    zeros = np.zeros(context.session.member(context.slot.name).n_columns)
    powers = yield from Sum(
        "phase-1",
        local=lambda: _count_powers(data, zeros, MOST_POWER),
        fits=lambda words: POWERS.fits(words, n_members),
        decode=POWERS.largest_powers,
        remember=lambda: [RowsSummed()],
    )
    values = FixedPoint.of(n * powers_of_two(powers))
    mean = yield from Sum(
        "phase-2",
        local=lambda: _sum_in_units(data, values, powers_of_two(powers)),
        fits=values.fits,
        decode=lambda words: values.decode(words) / n,
    )
    reach = yield from Sum(
        "phase-3",
        local=lambda: _count_powers(data, mean, POWERS.highest),
        fits=lambda words: POWERS.fits(words, n_members),
        decode=POWERS.largest_powers,
    )
    squares = FixedPoint.of(n * powers_of_two(2 * reach))
    deviations = yield from Sum(
        "phase-4",
        local=lambda: _sum_in_units(data, squares, powers_of_two(2 * reach), mean),
        fits=lambda words: (
            bool((words.view(np.int64) >= 0).all()) and squares.fits(words)
        ),
        decode=lambda words: np.maximum(squares.decode(words), 0.0),
    )
    varying = varies(deviations, n, mean, values.unit)
    pooled = PooledMoments(
        n_rows=n,
        mean=mean,
        deviations=np.where(varying, deviations, 0.0),
    )
    own = measure_moments(data)
    return Findings(
        [pooled, PooledReach(powers=reach)],
        doubts=units.ask_about_units(context, data.columns, own, pooled),
    )


def recall_moments(
    context: PartyContext, measure_own: Callable[[], Moments]
) -> PooledMoments:
    """Return the pooled moments or, if the party is alone in its group, its own."""
    if len(column_group_members(context)) >= _LEAST_MEMBERS:
        return context.recall(PooledMoments)
    own = measure_own()
    return PooledMoments(n_rows=own.n_rows, mean=own.mean, deviations=own.deviations)


def _count_powers(data: DataSource, mean: FloatArray, highest: int) -> IntArray:
    """Return a one for each feature, at the power of two that bounds |x - mean|."""
    largest = np.zeros(len(data.columns))
    for batch in data.batches():
        np.maximum(largest, np.abs(batch - mean).max(axis=0), out=largest)
    return POWERS.count(largest, data.columns, highest)


def _sum_in_units(
    data: DataSource,
    encoding: FixedPoint,
    bound: FloatArray,
    mean: FloatArray | None = None,
) -> IntArray:
    """Return the sum of values or, with ``mean``, of squared deviations, as integers."""
    total = np.zeros(len(data.columns), dtype=np.int64)
    for batch in data.batches():
        values = batch if mean is None else np.square(batch - mean)
        total += sum_in_units(values, encoding.unit, bound)
    return total


def _pooling_column_groups(session: SessionContext) -> list[tuple[str, ...]]:
    groups = session.layout.column_groups
    return [group for group in groups if len(group) >= _LEAST_MEMBERS]


def _sum_sizes(session: SessionContext, slot: str) -> list[int]:
    width = session.member(slot).n_columns
    return [width * POWERS.n_words, width, width * POWERS.n_words, width]


def build_stage() -> Stage:
    """Return the stage, which needs the secrets of column groups."""
    return SumProgram(
        NAME,
        _N_SUMS,
        pool_moments,
        _sum_sizes,
        groups=_pooling_column_groups,
        hiding=lambda _: CheckedSum(scope="column", minimum_members=_LEAST_MEMBERS),
    ).build_stage()
