"""The columns that are numbers and those that stand for levels, and rows as both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.shared_stages.scaling import Scaler
from clustering_protocols.terms.preparation import ColumnPlan


@dataclass(frozen=True, eq=False)
class Columns:
    """Numbers, and categories: yes and no, nominal levels, indicators of gaps.

    width: of all columns.
    categories: the columns of each; one alone is 1 for yes and 0 for no.
    """

    width: int
    categories: tuple[range, ...]

    @classmethod
    def of(cls, plan: ColumnPlan | None, width: int) -> Columns:
        """Return the columns of a table; without a plan all are numbers."""
        return cls(width, () if plan is None else plan.levels)

    @cached_property
    def numbers(self) -> IntArray:
        """Return the columns (F,) that are numbers."""
        coded = [column for category in self.categories for column in category]
        return np.setdiff1d(np.arange(self.width), coded)

    @cached_property
    def level_counts(self) -> tuple[int, ...]:
        """Return how many levels each category has."""
        return tuple(max(len(category), 2) for category in self.categories)

    @cached_property
    def level_slices(self) -> tuple[slice, ...]:
        """Return where the levels of each category stand among those of all."""
        ends = np.cumsum([0, *self.level_counts])
        return tuple(map(slice, ends[:-1].tolist(), ends[1:].tolist()))

    @property
    def n_levels(self) -> int:
        """Return how many levels all categories have together."""
        return sum(self.level_counts)

    def split(self, X: FloatArray, scale: Scaler) -> tuple[FloatArray, FloatArray]:
        """Return numbers (n, F) in scaled units, and which level (n, L) each row has.

        X: float64 (n, m), as it was prepared.
        """
        numbers = self.numbers
        Z = (X[:, numbers] - scale.offset[numbers]) * scale.inverse[numbers]
        return Z, self.spread((X > 0).astype(np.float64))

    def spread(self, coded: FloatArray) -> FloatArray:
        """Return the levels (n, L) of all columns (n, m), those of yes and no as two.

        coded: 1, or a share, where a row has a level.
        """
        levels = np.empty((len(coded), self.n_levels))
        for category, part in zip(self.categories, self.level_slices, strict=True):
            columns = coded[:, category.start : category.stop]
            binary = len(category) == 1
            levels[:, part] = np.hstack([1 - columns, columns]) if binary else columns
        return levels

    def join(
        self, Z: FloatArray, shares: FloatArray, scale: Scaler, high: FloatArray
    ) -> FloatArray:
        """Return means (k, m) in the units of the columns.

        Z: float64 (k, F), scaled; shares: float64 (k, L); high: float64 (m,), the value
            of a column where a row has its level.
        """
        means = np.empty((len(Z), self.width))
        numbers = self.numbers
        means[:, numbers] = Z / scale.inverse[numbers] + scale.offset[numbers]
        for category, levels in zip(self.categories, self.level_slices, strict=True):
            columns = slice(category.start, category.stop)
            share = shares[:, levels][:, -len(category) :]
            means[:, columns] = share * high[columns]
        return means
