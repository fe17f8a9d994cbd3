"""From the risks of terms to the lines in which people read them."""

from __future__ import annotations

from collections.abc import Mapping

from clustering_protocols.terms import risks as known
from coterie_pages.models import Risk


def show_risks(risks: Mapping[str, known.Risk]) -> tuple[Risk, ...]:
    """Return risks by level, those of the session's choices first, then worst first."""
    ordered = known.worst_first(risks).items()
    return tuple(
        Risk(
            code=code,
            sentence=risk.sentence,
            level=risk.level,
            harm=risk.harm,
            measured=risk.measured,
            remedy=risk.remedy,
            detail=risk.detail,
        )
        for level in known.RiskLevel
        for code, risk in ordered
        if risk.level is level
    )
