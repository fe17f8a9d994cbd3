"""Parameters of a description, which has no options."""

from __future__ import annotations

from collections.abc import Sequence

from clustering_protocols.contract import Params, PartyContext, SessionContext
from clustering_protocols.terms.preparation import ColumnPlan


class Describe(Params):
    """No options: the dictionary names the variables, the release names the readers."""

    @property
    def describes(self) -> bool:
        """Return True: rows are not clustered, and missing values are not filled."""
        return True

    def check_prepared(self, plans: Sequence[ColumnPlan]) -> None:
        """Accept every preparation: the terms refuse any that fills missing values."""


DescribeSession = SessionContext[Describe]
DescribeContext = PartyContext[Describe]
