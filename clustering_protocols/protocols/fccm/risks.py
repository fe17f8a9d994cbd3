"""The risk codes of `fccm`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clustering_protocols.shared_stages import shared_risks
from clustering_protocols.shared_stages.alignment import row_alignment
from clustering_protocols.terms.risks import Harm, Risk, RiskLevel

RISKS: Final[Mapping[str, Risk]] = {
    "each-site-computes-your-columns": Risk(
        level=RiskLevel.METHOD,
        harm=Harm.ROWS,
        sentence="Each site alone can compute the columns of the others, with the value "
        "of every object in them.",
        measured="Of tables of 24 to 45 columns of yes and no, one site found 85 to "
        "100 % of the columns of others, every object right, with all defaults.",
        remedy="A protocol that shows less; tables with more columns than all "
        "iterations of all starts (n_init) have clusters.",
        detail="A site takes its own share off every total that it reads. What is left "
        "spans the columns of the others, because the memberships of items change with "
        "every iteration and start. Numbers other than yes and no follow where a site "
        "knows as many rows as there are items.",
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
