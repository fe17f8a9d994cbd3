"""How large a session may be, and what it takes: arithmetic on the shapes of its arrays."""

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
    """How large a session is.

    rows, features: of all parties together, spread evenly over row groups and column
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
        """Return the rows of the party that has most."""
        return -(-self.rows // self.layout.n_row_groups)

    @property
    def party_features(self) -> int:
        """Return the features of the party that has most."""
        return -(-self.features // self.layout.n_column_groups)


class Sizes(Generic[P]):
    """What a session takes; a protocol that overrides nothing says nothing."""

    def upload_bytes(self, params: P, extent: Extent) -> int:
        """Return the bytes of arrays that the party with most data sends.

        Setup and pooled statistics are not counted. Where an algorithm updates by
        rounds, the most that the parameters allow are.
        """
        return 0

    def memory_bytes(self, params: P, extent: Extent) -> int:
        """Return the bytes of the arrays of the analyst's largest step."""
        return 0

    def updates_that_fit(
        self, params: Sequence[P], layout: Layout, n_rows: int
    ) -> int | None:
        """Return how many updates a party of so many rows answers in any case.

        Its audit (``sums_limit``) lets them through by default, whatever the clusters.
        None where it audits no sums.

        params: of each run.
        """
        return None

    def most_rows(self, params: P, n_features: int) -> int | None:
        """Return the most rows of all parties that fit the parameters; None: any."""
        return None

    def beyond(self, params: P) -> str:
        """Return what to do with more rows than fit, as a sentence."""
        return ""
