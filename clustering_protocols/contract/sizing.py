"""Estimates of a session's cost, computed from the shapes of its arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from clustering_protocols.terms.terms import Layout

from .session import Params

P = TypeVar("P", bound=Params)

WORD: Final = 8
"""The size in bytes of a float64, an int64, and an element of a ring or field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The size of a session.

    rows, features: totals, which are assumed to be spread evenly over the parties.
    """

    rows: int
    features: int
    layout: Layout

    @property
    def parties(self) -> int:
        """Return the number of parties."""
        return len(self.layout.slots)

    @property
    def party_rows(self) -> int:
        """Return the number of rows of the largest party."""
        return -(-self.rows // self.layout.n_row_groups)

    @property
    def party_features(self) -> int:
        """Return the number of features of the party with the most features."""
        return -(-self.features // self.layout.n_column_groups)


class Sizes(Generic[P]):
    """The costs and limits of a session; the defaults are no cost and no limit."""

    def upload_bytes(self, params: P, extent: Extent) -> int:
        """Return the maximum size in bytes of the arrays that the largest party sends.

        Setup and pooled statistics are not included.
        """
        return 0

    def memory_bytes(self, params: P, extent: Extent) -> int:
        """Return the largest size in bytes of the analyst's arrays in any step."""
        return 0

    def updates_that_fit(
        self, params: Sequence[P], layout: Layout, n_rows: int
    ) -> int | None:
        """Return how many updates a party with ``n_rows`` rows is certain to answer.

        With the default ``sums_limit``, the party's audit of its sums permits this
        number whatever the clusters are. Returns None if the party does not audit its
        sums.

        params: the parameters of each run.
        """
        return None

    def most_rows(self, params: P, n_features: int) -> int | None:
        """Return the largest total number of rows allowed, or None without a limit."""
        return None

    def advice_beyond_limit(self, params: P) -> str:
        """Return a sentence on what to do with more than ``most_rows`` rows."""
        return ""
