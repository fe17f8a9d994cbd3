"""The size and the cost of a session: arithmetic on the shapes of its arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from clustering_protocols.terms.terms import Layout

from .session import Params

P = TypeVar("P", bound=Params)

WORD: Final = 8
"""Bytes of a float64, an int64, and an element of a ring or field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The size of a session.

    rows, features: totals over all parties, spread evenly over row groups and column
        groups.
    """

    rows: int
    features: int
    layout: Layout

    @property
    def parties(self) -> int:
        """Return how many parties take part."""
        return len(self.layout.slots)

    @property
    def party_rows(self) -> int:
        """Return the rows of the largest party."""
        return -(-self.rows // self.layout.n_row_groups)

    @property
    def party_features(self) -> int:
        """Return the features of the widest party."""
        return -(-self.features // self.layout.n_column_groups)


class Sizes(Generic[P]):
    """The costs and limits of a session; by default 0 and none."""

    def upload_bytes(self, params: P, extent: Extent) -> int:
        """Return the most bytes of arrays that the largest party sends.

        Setup and pooled statistics are not counted.
        """
        return 0

    def memory_bytes(self, params: P, extent: Extent) -> int:
        """Return the bytes of the arrays of the analyst's largest step."""
        return 0

    def updates_that_fit(
        self, params: Sequence[P], layout: Layout, n_rows: int
    ) -> int | None:
        """Return how many updates a party of ``n_rows`` answers, whatever the clusters.

        Its audit of sums allows this number by default (``sums_limit``). None without
        an audit.

        params: the parameters of each run.
        """
        return None

    def most_rows(self, params: P, n_features: int) -> int | None:
        """Return the largest total of rows that the parameters allow; None if any."""
        return None

    def beyond(self, params: P) -> str:
        """Return a sentence on what to do with more than ``most_rows`` rows."""
        return ""
