"""Section 11: what a column group adds up about its clusters, sum after sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .derivations import Refusal, fixed_point
from .dictionary import Field
from .powers import Powers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_POWERS: Final = Powers()
_PARTS: Final = 64
_SIZE: Final = _PARTS + 2
_MOST_PARTS: Final = 2**23


@dataclass(frozen=True, eq=False)
class Totals:
    """Section 11, profiles, sums: what is known after so many."""

    fields: Sequence[Field]
    k: int
    n_rows: int
    n_members: int
    smallest: int
    sums: tuple[Ints, ...] = ()

    # What fields there are

    @cached_property
    def numbers(self) -> list[int]:
        """Section 11, profiles, fields: places of numbers."""
        return [i for i, each in enumerate(self.fields) if not each.levels]

    @cached_property
    def categories(self) -> list[int]:
        """Section 11, profiles, fields: places of those with levels."""
        return [i for i, each in enumerate(self.fields) if each.levels]

    @cached_property
    def ends(self) -> list[int]:
        """Section 11, profiles, fields: where the levels of each category end."""
        sizes = [len(self.fields[i].levels) for i in self.categories]
        return np.cumsum([0, *sizes]).tolist()

    @property
    def has_parts(self) -> bool:
        """Section 11, profiles, sums: whether there are histograms."""
        return self.k * len(self.numbers) * _SIZE <= _MOST_PARTS

    def size(self, which: int) -> int:
        """Section 11, profiles, sums: how many words one has."""
        m, cells = len(self.numbers), self.k * len(self.numbers)
        second = cells + self.k * self.ends[-1] + m * _POWERS.size
        fourth = m * _POWERS.size
        last = cells * _SIZE * self.has_parts
        return [self.k, second, cells, fourth, cells, last][which - 1]

    # Lines

    @cached_property
    def lines(self) -> tuple[list[int], list[int]]:
        """Section 11, profiles, lines: clusters with their own, and the others."""
        sizes = self.sums[0]
        ascending = [int(c) for c in np.argsort(sizes, kind="stable") if sizes[c] > 0]
        n = sum(int(sizes[c] < self.smallest) for c in ascending)
        while 0 < n < len(ascending):
            if n > 1 and sizes[ascending[:n]].sum() >= self.smallest:
                break
            n += 1
        others = ascending[:n]
        if others and sizes[others].sum() < self.smallest:
            return [], []
        return sorted(set(ascending) - set(others)), sorted(others)

    @property
    def n_lines(self) -> int:
        """Section 11, profiles, lines: how many there are."""
        own, others = self.lines
        return len(own) + bool(others)

    def line_of(self) -> Ints:
        """Section 11, profiles, lines: that of each cluster; -1 of none; last -1."""
        own, others = self.lines
        found = np.full(self.k + 1, -1)
        found[own] = np.arange(len(own))
        found[others] = len(own)
        return found

    @cached_property
    def line_rows(self) -> Ints:
        """Section 11, profiles, lines: their rows."""
        line, found = self.line_of()[:-1], np.zeros(self.k, np.int64)
        np.add.at(found, line[line >= 0], self.sums[0][line >= 0])
        return found

    # What sums give

    @cached_property
    def _second(self) -> list[Ints]:
        """Section 11, profiles, sum 2: its three parts."""
        cells = self.k * len(self.numbers)
        return np.split(self.sums[1], [cells, cells + self.k * self.ends[-1]])

    @cached_property
    def counts(self) -> Ints:
        """Section 11, profiles, sum 2: values of lines and numbers."""
        return self._second[0].reshape(self.k, -1)

    @cached_property
    def levels(self) -> Ints:
        """Section 11, profiles, sum 2: rows of lines and levels."""
        return self._second[1].reshape(self.k, -1)

    @cached_property
    def enough(self) -> NDArray[np.bool_]:
        """Section 11, profiles, sum 3: lines and numbers that have values enough."""
        return self.counts >= self.smallest

    def largest(self, which: int) -> Floats:
        """Section 11, profiles, sums 3 and 5: 2^p and 2^q of each number."""
        powers = self._second[2] if which == 3 else self.sums[3]
        found: Floats = 2.0 ** _POWERS.find_largest(powers)
        return found

    def bounds(self, which: int) -> Floats:
        """Section 11, profiles, sums 3 and 5: of each line and number."""
        largest = self.largest(which)
        most = largest if which == 3 else np.square(largest)
        found: Floats = np.maximum(self.counts, 1) * most
        return found

    def units(self, which: int) -> Floats:
        """Section 10: the units of these bounds."""
        bounds = self.bounds(which)
        found = fixed_point(bounds.reshape(-1), 59, np.zeros(1))[0]
        return np.asarray(found).reshape(bounds.shape)

    @cached_property
    def means(self) -> Floats:
        """Section 11, profiles, sum 3: of lines and numbers."""
        total = self.sums[2].reshape(self.k, -1) / self.units(3)
        return np.where(self.enough, total / np.maximum(self.counts, 1), 0.0)

    @cached_property
    def spreads(self) -> Floats:
        """Section 11, profiles, sum 5: of lines and numbers."""
        total = self.sums[4].reshape(self.k, -1) / self.units(5)
        digit = 4.0 * 2.0**-52 * np.abs(self.means)
        step = np.maximum(1.0 / self.units(3), digit)
        there = self.enough & (total > self.counts * np.square(step))
        return np.sqrt(np.where(there, total, 0.0) / np.maximum(self.counts, 1))

    @cached_property
    def grid(self) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Section 11, profiles, grid: where it begins, width of parts, whole numbers."""
        weight = np.where(self.enough, self.counts, 0)
        n = np.maximum(weight.sum(axis=0), 1)
        mean = (weight * self.means).sum(axis=0) / n
        around = np.square(self.spreads) + np.square(self.means - mean)
        spread = np.sqrt((weight * around).sum(axis=0) / n)
        fields = [self.fields[i] for i in self.numbers]
        whole = np.array([each.type != "number" for each in fields], dtype=bool)
        ends = np.array([each.range for each in fields]).reshape(-1, 2)
        low = np.maximum(_nine_digits(mean - 4.0 * spread), ends[:, 0])
        high = np.minimum(_nine_digits(mean + 4.0 * spread), ends[:, 1])
        low = np.where(whole, np.floor(low), low)
        high = np.where(whole, np.ceil(high), high)
        steps = np.maximum(np.ceil((high - low + 1.0) / _PARTS), 1.0)
        width = np.where(whole, steps, np.maximum(high - low, 0.0) / _PARTS)
        return low, width, whole

    def parts(self, values: Floats) -> Ints:
        """Section 11, profiles, grid: the part of each value."""
        low, width, whole = self.grid
        several = width > 0
        place = np.floor((values - low) / np.where(several, width, 1.0))
        place = np.where((values == low + _PARTS * width) & ~whole, _PARTS - 1, place)
        found = np.clip(np.where(several, place, 0), -1, _PARTS) + 1
        return np.nan_to_num(found).astype(np.int64)

    def middles(self, number: int) -> Floats:
        """Section 11, profiles, grid: for what each part stands."""
        low, width, whole = (each[number] for each in self.grid)
        half = (width - 1.0) / 2.0 if whole else width / 2.0
        found: Floats = low + width * np.arange(-1.0, _PARTS + 1.0) + half
        found[[0, -1]] = np.nan
        return found

    @property
    def histograms(self) -> Ints | None:
        """Section 11, profiles, sum 6: values of lines, numbers and parts."""
        if not self.has_parts:
            return None
        return self.sums[5].reshape(self.k, len(self.numbers), _SIZE)


def _nine_digits(values: Floats) -> Floats:
    """Section 11, profiles, grid: rounded to nine digits."""
    size = np.floor(np.log10(np.maximum(np.abs(values), 1e-300)))
    scale = 10.0 ** (8.0 - size)
    return np.rint(values * scale) / scale


@dataclass(frozen=True)
class _Rows:
    """Section 11, profiles: own rows that are in a line."""

    known: Totals
    line: Ints
    values: Floats

    @classmethod
    def of(cls, known: Totals, fields: Floats, labels: Ints) -> _Rows:
        """Section 11, profiles: those of a line."""
        line = known.line_of()[labels]
        return cls(known, line[line >= 0], fields[line >= 0])

    @property
    def numbers(self) -> Floats:
        """Section 11, profiles: their numbers."""
        return self.values[:, self.known.numbers]

    def add(self, terms: Floats) -> Floats:
        """Section 11, profiles: sums of terms by line."""
        found = np.zeros((self.known.k, terms.shape[1]))
        np.add.at(found, self.line, terms)
        return found

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Section 11, profiles, sum 3: values that are there, in lines with enough."""
        return self.known.enough[self.line] & ~np.isnan(self.numbers)

    @property
    def deviations(self) -> Floats:
        """Section 11, profiles, sum 4: from the mean of the line."""
        away = self.numbers - self.known.means[self.line]
        return np.where(self.counted, away, 0.0)


def count_own(known: Totals, fields: Floats, labels: Ints) -> Ints:
    """Section 11, profiles, sums: what a party adds."""
    which = len(known.sums) + 1
    if which == 1:
        return np.bincount(labels[labels >= 0], minlength=known.k)
    rows = _Rows.of(known, fields, labels)
    if which == 2:
        return _count(rows)
    if which == 4:
        return _POWERS.count(rows.deviations)
    if which == 6:
        return _count_parts(rows)
    terms = np.where(rows.counted, rows.numbers, 0.0) if which == 3 else rows.deviations
    if (np.abs(terms) > known.largest(which)).any():
        raise Refusal("protocol-failed")
    total = rows.add(terms if which == 3 else np.square(terms))
    return np.rint(total * known.units(which)).astype(np.int64).reshape(-1)


def _count(rows: _Rows) -> Ints:
    """Section 11, profiles, sum 2: values, levels, powers."""
    known, numbers = rows.known, rows.numbers
    counts = rows.add((~np.isnan(numbers)).astype(np.float64)).astype(np.int64)
    levels = np.zeros((known.k, known.ends[-1]), np.int64)
    for begin, place in zip(known.ends, known.categories, strict=False):
        own = rows.values[:, place]
        there = ~np.isnan(own)
        column = begin + own[there].astype(np.int64)
        np.add.at(levels, (rows.line[there], column), 1)
    powers = _POWERS.count(np.nan_to_num(numbers))
    return np.concatenate([counts.reshape(-1), levels.reshape(-1), powers])


def _count_parts(rows: _Rows) -> Ints:
    """Section 11, profiles, sum 6: values in parts of the grid."""
    known, counted = rows.known, rows.counted
    if not known.has_parts:
        return np.zeros(0, np.int64)
    found = np.zeros((known.k, len(known.numbers), _SIZE), np.int64)
    parts = known.parts(np.where(counted, rows.numbers, 0.0))
    for number in range(len(known.numbers)):
        own = counted[:, number]
        np.add.at(found, (rows.line[own], number, parts[own, number]), 1)
    return found.reshape(-1)


def fits(known: Totals, total: Ints) -> bool:
    """Section 11, profiles, sums: whether members can have sent a total."""
    after = replace(known, sums=(*known.sums, total))
    which = len(after.sums)
    if which == 1:
        return _are_counts(total, np.array(known.n_rows))
    if which == 2:
        rows = after.line_rows
        ends = zip(after.ends, after.ends[1:], strict=False)
        levels = (after.levels[:, begin:end] for begin, end in ends)
        small = (after.counts >= 0) & (after.counts <= rows[:, None])
        return (
            bool(small.all())
            and all(_are_counts(each, rows) for each in levels)
            and _POWERS.fit(after._second[2], known.n_members)
        )
    if which == 4:
        return _POWERS.fit(total, known.n_members)
    if which == 6:
        expected = np.where(known.enough, known.counts, 0)
        found = after.histograms
        return found is None or (
            bool((found >= 0).all()) and bool((found.sum(axis=2) == expected).all())
        )
    return which == 3 or bool((total >= 0).all())


def _are_counts(found: Ints, most: Ints) -> bool:
    """Section 11, profiles, sums: counts of which there are at most so many."""
    small = bool(((found >= 0) & (found <= most[..., None])).all())
    return small and bool((found.sum(axis=-1) <= most).all())
