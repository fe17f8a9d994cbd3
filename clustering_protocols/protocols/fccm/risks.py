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
        "totals from which they come; the memberships of its own items."
    ),
    "coordinator": "What the analyst learns of the result.",
}
RISKS: Final[Mapping[str, Risk]] = {
    "by-design": Risk(
        level=RiskLevel.DESIGN,
        harm=Harm.ROWS_JOINTLY,
        sentence="Every site reads the memberships of all objects, and exact sums over "
        "the items of all sites in every iteration.",
        remedy="Fewer starts (n_init) and iterations show fewer sums.",
        detail="Less a site's own share, a sum is over the items of others. By default a "
        "session is refused where sums could be solved for these items. Nearly crisp "
        "item memberships (a small lambda_w) make a sum a single item.",
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
