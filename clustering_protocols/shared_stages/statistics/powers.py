"""How parties find a bound before they add up: they count powers of two.

Fixed point needs a bound on what it adds. Each party counts a one at the power of two
that bounds its own values of a column; the largest power that anybody counted bounds
those of all.
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
"""Of values: of 2^62 and more nothing can be added up."""

_MOST_NAMED: Final = 10
_LAST_DIGITS: Final = 4.0 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class PowerCounts:
    """Counts of powers of two from 2^-128 to a highest one, column behind column."""

    highest: int = MOST_POWER

    @property
    def size(self) -> int:
        """Return how many counts a column has."""
        return self.highest - LOWEST_POWER + 1

    @property
    def _powers(self) -> IntArray:
        return np.arange(LOWEST_POWER, self.highest + 1)

    def count(
        self, largest: FloatArray, names: Sequence[str], most: int | None = None
    ) -> IntArray:
        """Return (m · size,), for each column a one at the power that bounds it.

        largest: float64 (m,); the largest absolute value of each column.
        names: of the columns (m,).
        most: the largest power that is allowed; the highest one, if None.

        Raises InvalidData where a column needs a larger one.
        """
        powers = np.where(largest > 0, np.frexp(largest)[1], LOWEST_POWER)
        beyond = np.flatnonzero(powers > (self.highest if most is None else most))
        if len(beyond):
            named = ", ".join(names[place] for place in beyond[:_MOST_NAMED])
            raise InvalidData(f"Values of 2^{MOST_POWER} and more, in {named}.")
        powers = np.maximum(powers, LOWEST_POWER)
        found: IntArray = (powers[:, None] == self._powers).astype(np.int64).ravel()
        return found

    def fits(self, counts: IntArray, n_members: int) -> bool:
        """Return whether each of so many members counted one power of each column."""
        found = counts.reshape(-1, self.size)  # small ones: their sums do not wrap
        small = bool(((found >= 0) & (found <= n_members)).all())
        return small and bool((found.sum(axis=1) == n_members).all())

    def largest(self, counts: IntArray) -> IntArray:
        """Return the largest power (m,) that a member counted of each column."""
        found = counts.reshape(-1, self.size)
        highest = self.size - 1 - np.argmax(found[:, ::-1] > 0, axis=1)
        powers: IntArray = self._powers[highest]
        return powers


def bound_of(powers: IntArray) -> FloatArray:
    """Return 2 to each of some powers."""
    return np.ldexp(1.0, powers)


def check_bound(values: FloatArray, most: FloatArray | float) -> None:
    """Refuse a bound below this party's own values: it was counted, so a total lies.

    Raises ProtocolFailed.
    """
    if (np.abs(values) > most).any():
        raise ProtocolFailed("The pooled bound is below values of this party.")


def count_units(values: FloatArray, unit: FloatArray, most: FloatArray) -> IntArray:
    """Return values (n, m) in whole units, added up (m,): one rounding per row.

    So the sum does not depend on how rows are cut into parties and batches.

    Raises ProtocolFailed if a value exceeds the pooled bound ``most``.
    """
    check_bound(values, most)
    found: IntArray = np.rint(values * unit).astype(np.int64).sum(axis=0)
    return found


def varies(
    squares: FloatArray,
    counts: FloatArray | IntArray | int,
    mean: FloatArray,
    unit: FloatArray,
) -> NDArray[np.bool_]:
    """Return where sums of squared deviations are more than rounding of the mean.

    The mean is known to a unit, or to its last digits: less spread is none.
    """
    step = np.maximum(1.0 / unit, _LAST_DIGITS * np.abs(mean))
    return squares > counts * np.square(step)
