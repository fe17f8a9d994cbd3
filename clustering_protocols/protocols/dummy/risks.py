"""The one risk code of the dummy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clustering_protocols.terms import risks

RISKS: Final[Mapping[str, risks.Risk]] = {
    "row-count-is-known": risks.Risk(
        level=risks.RiskLevel.METHOD,
        harm=risks.Harm.STATISTICS,
        sentence="The analyst learns how many rows you hold.",
        remedy="Nothing.",
    )
}
