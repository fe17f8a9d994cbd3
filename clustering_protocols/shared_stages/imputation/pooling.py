"""How a mean, a median and a most frequent level are pooled, in two sums each.

What is added up are whole numbers: counts, and values in units of a fixed point. So the
outcome does not depend on how rows are cut into parties and batches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.secrecy.fixed_point import FixedPoint
from clustering_protocols.shared_stages.statistics.powers import (
    PowerCounts,
    bound_of,
    count_units,
)
from clustering_protocols.terms.preparation import Fill

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
            middles.append(self._round_median(found))
        return sum(middles) / 2

    def _round_median(self, found: float) -> float:
        """Return the only integer near, where no two share a part of a part."""
        fine = self.fill.whole and self.fill.high - self.fill.low < BINS**2
        return float(np.rint(found)) if fine else found


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
