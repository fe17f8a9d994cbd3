"""Bounds for fixed-point sums, agreed by counting powers of two.

Fixed-point sums need a bound on their terms. Each party counts a one at the power of
two that bounds its own values of a column; the largest power that anybody counted
bounds those of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clustering_protocols.common.errors import InvalidData, ProtocolFailed
from clustering_protocols.records.arrays import FloatArray, IntArray

LOWEST_POWER: Final = -128
MOST_POWER: Final = 62
"""Of values: those of 2^62 and more cannot be added up."""

_MOST_NAMED: Final = 10
_LAST_DIGITS: Final = 4.0 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class PowerCounts:
    """Counts of powers of two from 2^-128 to a highest one, column behind column."""

    highest: int = MOST_POWER

    @property
    def size(self) -> int:
        """Return the number of counts of a column."""
        return self.highest - LOWEST_POWER + 1

    @property
    def _powers(self) -> IntArray:
        return np.arange(LOWEST_POWER, self.highest + 1)

    def count(
        self, largest: FloatArray, names: Sequence[str], limit: int | None = None
    ) -> IntArray:
        """Return (m · size,), for each column a one at the power that bounds it.

        largest: float64 (m,); the largest absolute value of each column.
        names: of the columns (m,).
        limit: the largest power that is allowed; the highest one, if None.

        Raises InvalidData where a column needs a larger one.
        """
        powers = np.where(largest > 0, np.frexp(largest)[1], LOWEST_POWER)
        excessive = np.flatnonzero(powers > (self.highest if limit is None else limit))
        if len(excessive):
            columns = ", ".join(names[column] for column in excessive[:_MOST_NAMED])
            raise InvalidData(f"Values of 2^{MOST_POWER} and more, in {columns}.")
        powers = np.maximum(powers, LOWEST_POWER)
        counts: IntArray = (powers[:, None] == self._powers).astype(np.int64).ravel()
        return counts

    def fits(self, counts: IntArray, n_members: int) -> bool:
        """Return whether each of n_members counted one power of each column."""
        by_column = counts.reshape(-1, self.size)
        small = bool(((by_column >= 0) & (by_column <= n_members)).all())
        # sums of small counts do not wrap
        return small and bool((by_column.sum(axis=1) == n_members).all())

    def largest(self, counts: IntArray) -> IntArray:
        """Return the largest power (m,) that a member counted of each column."""
        by_column = counts.reshape(-1, self.size)
        highest = self.size - 1 - np.argmax(by_column[:, ::-1] > 0, axis=1)
        powers: IntArray = self._powers[highest]
        return powers


def bound_of(powers: IntArray) -> FloatArray:
    """Return 2^powers."""
    return np.ldexp(1.0, powers)


def check_bound(values: FloatArray, bound: FloatArray | float) -> None:
    """Refuse a bound below this party's own values, which an honest total includes.

    Raises ProtocolFailed.
    """
    if (np.abs(values) > bound).any():
        raise ProtocolFailed("The pooled bound is below values of this party.")


def count_units(values: FloatArray, unit: FloatArray, bound: FloatArray) -> IntArray:
    """Return values (n, m) in whole units, added up (m,): one rounding per row.

    So the sum does not depend on how rows are cut into parties and batches.

    Raises ProtocolFailed if a value exceeds the pooled bound.
    """
    check_bound(values, bound)
    total: IntArray = np.rint(values * unit).astype(np.int64).sum(axis=0)
    return total


def varies(
    squares: FloatArray,
    counts: FloatArray | IntArray | int,
    mean: FloatArray,
    unit: FloatArray,
) -> NDArray[np.bool_]:
    """Return where sums of squared deviations exceed the rounding of the mean.

    The mean is known to a unit, or to its last digits; a smaller spread counts as none.
    """
    step = np.maximum(1.0 / unit, _LAST_DIGITS * np.abs(mean))
    return squares > counts * np.square(step)
