"""The one risk code of the dummy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clustering_protocols.terms.risks import Harm, Risk, RiskLevel

LEARNS: Final = {"analyst": "The number of rows.", "party": "Its labels."}
RISKS: Final[Mapping[str, Risk]] = {
    "by-design": Risk(
        level=RiskLevel.DESIGN,
        harm=Harm.STATISTICS,
        sentence="The analyst learns how many rows you hold.",
        remedy="Nothing.",
        readers=tuple(LEARNS.items()),
    )
}
