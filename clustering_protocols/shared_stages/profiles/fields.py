"""Which fields of a dictionary are profiled as numbers, and which by their levels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from clustering_protocols.numerics.profiles import NO_YES
from clustering_protocols.records.arrays import FloatArray, IntArray
from clustering_protocols.terms.schema import Field, Schema


@dataclass(frozen=True)
class ProfileFields:
    """The fields of one column group."""

    schema: Schema

    @cached_property
    def numbers(self) -> IntArray:
        """Return the places of numbers and dates (m,)."""
        return self._places(levels=False)

    @cached_property
    def categories(self) -> IntArray:
        """Return the places of fields with levels, yes and no among them."""
        return self._places(levels=True)

    def _places(self, *, levels: bool) -> IntArray:
        fields = enumerate(self.schema.fields)
        found = [i for i, each in fields if bool(levels_of(each)) == levels]
        return np.array(found, dtype=np.int64)

    @cached_property
    def ends(self) -> IntArray:
        """Return where the levels of each category end, side by side."""
        sizes = [len(levels_of(self.schema.fields[i])) for i in self.categories]
        return np.cumsum([0, *sizes])

    @property
    def n_levels(self) -> int:
        """Return how many levels all categories have together."""
        return int(self.ends[-1])

    @cached_property
    def whole(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return which of the numbers (m,) are integers or days."""
        kinds = [self.schema.fields[i].type for i in self.numbers]
        return np.array([kind != "number" for kind in kinds], dtype=np.bool_)

    @cached_property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return least and greatest value of the numbers (m,), as the dictionary says.

        Infinite where it says nothing.
        """
        found = [self.schema.fields[i].bounds for i in self.numbers]
        low, high = np.array(found, dtype=np.float64).reshape(-1, 2).T
        return low, high


def levels_of(field: Field) -> tuple[str, ...]:
    """Return how people call the levels of a field; none of a number."""
    return NO_YES if field.type == "boolean" else field.labels
