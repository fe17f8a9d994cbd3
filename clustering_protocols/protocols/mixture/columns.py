"""Divide the columns of a table into numbers and the levels of categories."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.shared_stages.scaling import Scaler
from clustering_protocols.terms.preparation import ColumnPlan


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a table that are numbers, and those that encode categories.

    Categories are yes-or-no fields, nominal fields and indicators of missing values.

    width: the number of all columns.
    categories: the columns of each category; a single column means no (0) or yes.
    """

    width: int
    categories: tuple[range, ...]

    @classmethod
    def from_plan(cls, plan: ColumnPlan | None, width: int) -> Columns:
        """Divide the columns of a prepared table; without a plan, all are numbers."""
        return cls(width, () if plan is None else plan.levels)

    @cached_property
    def numbers(self) -> IntArray:
        """The positions (F,) of the columns that are numbers."""
        coded = [column for category in self.categories for column in category]
        return np.setdiff1d(np.arange(self.width), coded)

    @cached_property
    def level_counts(self) -> tuple[int, ...]:
        """The number of levels of each category."""
        return tuple(max(len(category), 2) for category in self.categories)

    @cached_property
    def level_slices(self) -> tuple[slice, ...]:
        """The slice of each category's levels among the levels of all categories."""
        ends = np.cumsum([0, *self.level_counts])
        return tuple(map(slice, ends[:-1].tolist(), ends[1:].tolist()))

    @property
    def n_levels(self) -> int:
        """The total number L of levels of all categories."""
        return sum(self.level_counts)

    def split_rows(self, X: FloatArray, scale: Scaler) -> tuple[FloatArray, FloatArray]:
        """Split prepared rows X (n, m) into scaled numbers (n, F) and levels (n, L).

        Levels are 1 for those that a row has, and 0 for the others.
        """
        numbers = self.numbers
        Z = (X[:, numbers] - scale.offset[numbers]) * scale.inverse[numbers]
        return Z, self.to_levels((X > 0).astype(np.float64))

    def to_levels(self, coded: FloatArray) -> FloatArray:
        """Return indicators (n, L) of all levels, with two levels for yes-or-no columns.

        coded: float64 (n, m); 1 in each column whose level the row has, or a share.
        """
        levels = np.empty((len(coded), self.n_levels))
        for category, part in zip(self.categories, self.level_slices, strict=True):
            columns = coded[:, category.start : category.stop]
            binary = len(category) == 1
            levels[:, part] = np.hstack([1 - columns, columns]) if binary else columns
        return levels

    def join_means(
        self, Z: FloatArray, shares: FloatArray, scale: Scaler, high: FloatArray
    ) -> FloatArray:
        """Combine means of numbers and shares of levels into means (k, m) of all columns.

        Z: float64 (k, F); the scaled means of the numbers.
        shares: float64 (k, L); the shares of the levels.
        high: float64 (m,); the value of a column in rows that have its level.
        """
        means = np.empty((len(Z), self.width))
        numbers = self.numbers
        means[:, numbers] = Z / scale.inverse[numbers] + scale.offset[numbers]
        for category, levels in zip(self.categories, self.level_slices, strict=True):
            columns = slice(category.start, category.stop)
            share = shares[:, levels][:, -len(category) :]
            means[:, columns] = share * high[columns]
        return means
