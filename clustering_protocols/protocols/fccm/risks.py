"""Who learns what in `fccm`, and its risk codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clustering_protocols.terms.risks import Harm, Risk, RiskLevel

LEARNS: Final = {
    "analyst": (
        "Numbers of objects and items, how far the memberships move in each "
        "iteration and which starts have come to rest; of the best start the sizes "
        "of clusters that are large enough, the criterion and the partition "
        "coefficient."
    ),
    "party": (
        "In every iteration of every start the memberships of all objects and the "
        "totals from which they come; the memberships of its own items. From the "
        "totals it can compute the columns of all others."
    ),
    "coordinator": "What the analyst learns of the result.",
}
RISKS: Final[Mapping[str, Risk]] = {
    "by-design": Risk(
        level=RiskLevel.DESIGN,
        harm=Harm.ROWS,
        sentence="Every site reads the totals of every iteration; less its own share, "
        "it can compute the other sites' columns from them.",
        measured="Of tables of 24 to 45 columns of yes and no, one site found 85 to "
        "100 % of the columns of others, every object right, with all defaults.",
        remedy="Nothing. Take part only where all sites may read your columns.",
        detail="What is left spans the columns of the others, because the memberships "
        "of items change with every iteration and start. Numbers other than yes and no "
        "follow where a site knows as many rows as there are items. It does not learn "
        "which column is which item.",
        readers=tuple(LEARNS.items()),
    ),
    "collusion": Risk(
        level=RiskLevel.COLLUSION,
        harm=Harm.ROWS_JOINTLY,
        sentence="If all other sites collude, they subtract their shares and read your "
        "sums over items in every iteration.",
        remedy="More sites that you know; fewer starts (n_init) and iterations.",
        detail="They read these in every iteration of every start (n_init), and each "
        "start adds as many equations. With many iterations and known rows they can "
        "rebuild your matrix. So can an analyst that colludes with a site: the two "
        "read the totals, and can falsify them.",
    ),
}
