"""Parameters of a description, which has no options."""

from __future__ import annotations

from collections.abc import Sequence

from clustering_protocols.contract import Params, PartyContext, SessionContext
from clustering_protocols.terms.preparation import ColumnPlan


class Describe(Params):
    """Parameters of `describe`, which has none: the terms name variables and readers."""

    @property
    def describes(self) -> bool:
        """True, because rows are not clustered and missing values are not filled."""
        return True

    def check_prepared_columns(self, plans: Sequence[ColumnPlan]) -> None:
        """Accept every preparation: the terms refuse those that fill missing values."""


DescribeSession = SessionContext[Describe]
DescribeContext = PartyContext[Describe]
