"""Parameters of a description: there is nothing to choose."""

from __future__ import annotations

from collections.abc import Sequence

from clustering_protocols.contract import Params, PartyContext, SessionContext
from clustering_protocols.terms.preparation import ColumnPlan


class Describe(Params):
    """The dictionary says which variables are described, the release who reads it."""

    @property
    def describes(self) -> bool:
        """Return True: no row gets a cluster, and gaps stay gaps."""
        return True

    def check_prepared(self, plans: Sequence[ColumnPlan]) -> None:
        """Accept every preparation: the terms are checked for gaps that stay."""


DescribeSession = SessionContext[Describe]
DescribeContext = PartyContext[Describe]
