"""How long the analyst keeps what a session leaves there."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from clustering_protocols.common.values import Section
from clustering_protocols.terms.captions import (
    DECADE,
    DELETE_WITHIN,
    KEEP_CONTRIBUTIONS,
)


class Retention(Section):
    """The longest time for which the analyst keeps contributions, and the rest.

    The terms are signed, so that a party can hold the analyst to it. An analyst keeps no
    session longer, whatever its settings say.
    """

    contributions: Annotated[int, KEEP_CONTRIBUTIONS] = Field(
        default=0,
        ge=0,
        le=DECADE,
        description="Seconds after the end of the session.",
    )
    session: Annotated[int, DELETE_WITHIN] = Field(
        ge=3600,  # parties have to fetch their results
        le=DECADE,
        description="Seconds after its end, in which all but the audit is deleted.",
    )

    @property
    def sentence(self) -> str:
        """Return when what is deleted."""
        kept = f"within {_span(self.contributions)} of the end"
        return (
            "the analyst deletes contributions "
            f"{kept if self.contributions else 'at the end'}, and results, terms and "
            f"receipts within {_span(self.session)} of the end; its audit stays"
        )


def _span(seconds: int) -> str:
    for unit, length in (("day", 86_400), ("hour", 3600)):
        if seconds and seconds % length == 0:
            count = seconds // length
            return f"{count:,} {unit}{'s' * (count > 1)}"
    return f"{seconds:,} seconds"
