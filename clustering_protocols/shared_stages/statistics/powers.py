"""Bounds for fixed-point sums, which parties find by counting powers of two.

Fixed-point sums need a bound on their terms. Each party counts a one at the power of
two that bounds its own values of a column. The largest power with a nonzero count then
bounds the values of all parties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clustering_protocols.common.errors import InvalidData, ProtocolFailed
from clustering_protocols.records.arrays import FloatArray, IntArray, WordArray

LOWEST_POWER: Final = -128
MOST_POWER: Final = 62
"""The highest power for values, because values of 2^62 and more cannot be added up."""

_MOST_NAMED: Final = 10
_LAST_DIGITS: Final = 4.0 * float(np.finfo(np.float64).eps)

_BITS: Final = 8  # bits per count, since a column group has at most 250 members
_COUNTS: Final = 7  # counts per word, since elements of checked sums are below 2^60


def exponents_of(largest: FloatArray) -> IntArray:
    """Return the exponents, from -128, of the powers of two above these values (m,) ≥ 0."""
    powers = np.where(largest > 0, np.frexp(largest)[1], LOWEST_POWER)
    return np.maximum(powers, LOWEST_POWER).astype(np.int64)


@dataclass(frozen=True, slots=True)
class PowerCounts:
    """Encoding of the counts, for each column, of powers of two from 2^-128 to 2^highest.

    A word holds the counts of seven powers, the lowest power in its lowest eight bits.
    """

    highest: int = MOST_POWER

    @property
    def n_words(self) -> int:
        """Return the number of words per column."""
        return (self.highest - LOWEST_POWER) // _COUNTS + 1

    def count(
        self, largest: FloatArray, names: Sequence[str], limit: int | None = None
    ) -> IntArray:
        """Return a one for each column, at the power of two that bounds its values.

        largest: float64 (m,); the largest absolute value of each column.
        names: the names of the columns (m,), for the error message.
        limit: the largest power that is allowed; ``highest`` if None.

        Returns int64 (m · n_words,); raises InvalidData if a power exceeds the limit.
        """
        powers = exponents_of(largest)
        excessive = np.flatnonzero(powers > (self.highest if limit is None else limit))
        if len(excessive):
            columns = ", ".join(names[column] for column in excessive[:_MOST_NAMED])
            raise InvalidData(f"Values of 2^{MOST_POWER} and more, in {columns}.")
        word, place = np.divmod(powers - LOWEST_POWER, _COUNTS)
        words = np.zeros((len(largest), self.n_words), dtype=np.int64)
        words[np.arange(len(largest)), word] = np.int64(1) << _BITS * place
        return words.ravel()

    def fits(self, words: IntArray | WordArray, n_members: int) -> bool:
        """Return whether n_members can have counted one power each for every column."""
        words = words.view(np.int64)
        counts = self._counts(words)
        beyond = counts[:, self.highest - LOWEST_POWER + 1 :]
        has_only_counts = bool((words >> (_BITS * _COUNTS) == 0).all())
        one_each = bool((counts.sum(axis=1) == n_members).all())
        return has_only_counts and one_each and not beyond.any()

    def largest_powers(self, words: IntArray | WordArray) -> IntArray:
        """Return the exponent (m,) of the largest power counted for each column."""
        is_counted = self._counts(words.view(np.int64))[:, ::-1] > 0
        highest = LOWEST_POWER + is_counted.shape[1] - 1
        powers: IntArray = highest - np.argmax(is_counted, axis=1)
        return powers

    def _counts(self, words: IntArray) -> IntArray:
        """Return the counts of each column, int64 (m, 7 · n_words), lowest power first."""
        by_place = words[:, None] >> (_BITS * np.arange(_COUNTS)) & (2**_BITS - 1)
        counts: IntArray = by_place.reshape(-1, _COUNTS * self.n_words)
        return counts


def powers_of_two(powers: IntArray) -> FloatArray:
    """Return 2.0 ** powers."""
    return np.ldexp(1.0, powers)


def check_bound(values: FloatArray, bound: FloatArray | float) -> None:
    """Raise ProtocolFailed if a pooled bound is below the values of this party.

    If the total is honest, the bound covers the values of every party.
    """
    if (np.abs(values) > bound).any():
        raise ProtocolFailed("The pooled bound is below some values of this party.")


def sum_in_units(values: FloatArray, unit: FloatArray, bound: FloatArray) -> IntArray:
    """Return the sums (m,) of values (n, m) as integers, each value rounded to units.

    Therefore, the sums do not depend on how parties and batches divide the rows.

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
    """Return which sums of squared deviations are too large to be rounding errors.

    A mean is exact up to 1 / ``unit`` or up to its last digits, whichever is larger.
    Sums that correspond to a smaller deviation than this count as zero.
    """
    step = np.maximum(1.0 / unit, _LAST_DIGITS * np.abs(mean))
    return squares > counts * np.square(step)
