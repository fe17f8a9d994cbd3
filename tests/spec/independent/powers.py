"""Section 11, moments: counters of powers of two, which bound what is added up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from .derivations import Refusal

Ints = NDArray[np.int64]
LOWEST: Final = -128


@dataclass(frozen=True)
class Powers:
    """Section 11, moments: counters from the lowest power to a highest one."""

    highest: int = 62

    @property
    def size(self) -> int:
        """Section 11, moments: the counters of a column."""
        return self.highest - LOWEST + 1

    def count(self, values: NDArray[np.float64], most: int = 62) -> Ints:
        """Section 11, moments, phase 1: a one at `exp` of the largest of each column.

        values: (n, m). most: the largest power that is allowed.
        """
        largest = np.abs(values).max(axis=0, initial=0.0)
        found = np.where(largest > 0, np.maximum(np.frexp(largest)[1], LOWEST), LOWEST)
        if (found > most).any():
            raise Refusal("invalid-data")
        places = found[:, None] - LOWEST == np.arange(self.size)
        return places.astype(np.int64).reshape(-1)

    def find_largest(self, counts: NDArray[Any]) -> NDArray[np.float64]:
        """Section 11, moments: the highest power that somebody counted of each column."""
        columns = counts.reshape(-1, self.size)
        found = [np.flatnonzero(each)[-1] + LOWEST for each in columns]
        return np.array(found, dtype=np.float64)

    def fit(self, counts: Ints, n_members: int) -> bool:
        """Section 11, moments: whether each member counted one power of each column."""
        columns = counts.reshape(-1, self.size)
        small = bool(((columns >= 0) & (columns <= n_members)).all())
        return small and bool((columns.sum(axis=1) == n_members).all())
