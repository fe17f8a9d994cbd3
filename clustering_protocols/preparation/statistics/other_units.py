"""A party's guard against rows in other units than those of the others.

One hospital's grams among the kilograms of the others make one cluster of its rows.
Whoever compares its own mean and spread with the pooled ones sees it, before rows are
used: nobody else needs to know either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np

from clustering_protocols.arrays import FloatArray
from clustering_protocols.contract import PartyContext
from clustering_protocols.errors import GuardRefused
from clustering_protocols.house import OTHER_UNITS

FACTOR: Final = 100.0


class Known(Protocol):
    """Means and spreads of the columns: float64 arrays of shape (m,)."""

    @property
    def mean(self) -> FloatArray:
        """Return the means."""
        ...

    @property
    def spread(self) -> FloatArray:
        """Return the standard deviations."""
        ...


def check(
    context: PartyContext,
    columns: Sequence[str],
    own: Known,
    pooled: Known,
) -> None:
    """Refuse to go on with columns that look like other units.

    Parameters
    ----------
    columns : sequence of str
    own, pooled : Known
        Of this party's rows, and of all. A column that is constant here says nothing of
        its unit.

    Raises
    ------
    GuardRefused
        If own spreads are 100 times smaller than the pooled ones, or means that lie
        farther apart than the pooled spread differ by that factor.
    """
    if context.choices.get(OTHER_UNITS):
        return
    narrow = FACTOR * own.spread < pooled.spread
    low, high = np.sort(np.abs([own.mean, pooled.mean]), axis=0)
    apart = (FACTOR * low < high) & (np.abs(own.mean - pooled.mean) > pooled.spread)
    found = np.flatnonzero((narrow | apart) & (own.spread > 0))
    if found.size:
        named = ", ".join(columns[place] for place in found[:10])
        raise GuardRefused(
            f"Means or spreads here are {FACTOR:g} times from those of all rows, in "
            f"{named}: other units? Correct the table, or decide --choice {OTHER_UNITS}=true."
        )
