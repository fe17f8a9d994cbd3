"""The risk codes of `fccm`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clustering_protocols.shared_stages import shared_risks
from clustering_protocols.shared_stages.alignment import row_alignment
from clustering_protocols.terms.risks import Harm, Risk, RiskLevel

RISKS: Final[Mapping[str, Risk]] = {
    "other-sites-together-see-your-sums": Risk(
        level=RiskLevel.METHOD,
        harm=Harm.ROWS_JOINTLY,
        sentence="If all other sites collude, they subtract their shares and read your "
        "sums over items in every iteration.",
        remedy="More sites that you know; fewer starts (n_init) and iterations.",
        detail="They read these in every iteration of every start (n_init), and each "
        "start adds as many equations. With many iterations and known rows they can "
        "rebuild your matrix.",
    ),
    "analyst-reads-totals": Risk(
        level=RiskLevel.SESSION,
        harm=Harm.GEOMETRY,
        sentence="The analyst reads the totals of every iteration: the memberships of "
        "all objects, in a secret order.",
        remedy="analyst_view 'blind', the default.",
    ),
    **shared_risks.RISKS,
    **row_alignment.RISKS,
}
