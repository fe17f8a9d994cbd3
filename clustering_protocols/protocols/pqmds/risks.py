"""Who learns what in `pqmds`, and its risk codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clustering_protocols.terms.risks import Harm, Risk, RiskLevel

LEARNS: Final = {
    "analyst": (
        "Numbers of rows and features; for each row, in a secret order, one "
        "coordinate per subspace, or as many as the terms say: which rows share a "
        "cell there, and how far cells lie apart along so many directions. It alone "
        "computes the clusters, which no party can check."
    ),
    "party": (
        "The cluster of each of its rows, the sizes of all clusters, and the "
        "clusters' centres in its own codes."
    ),
    "coordinator": "Cluster sizes, the inertia, positions of the starts.",
}
RISKS: Final[Mapping[str, Risk]] = {
    "by-design": Risk(
        level=RiskLevel.DESIGN,
        harm=Harm.GEOMETRY,
        sentence="The analyst sees which of your rows share a cell of each subspace, "
        "and how cells lie along one direction.",
        remedy="A method that sends no rows, such as llf over split rows.",
        detail="Anyone with these codes who knows the distribution of your features "
        "can place rows along that direction.",
        readers=tuple(LEARNS.items()),
    ),
    "collusion": Risk(
        level=RiskLevel.COLLUSION,
        harm=Harm.ROWS_JOINTLY,
        sentence="If a party colludes with the analyst, the two know whose codes are "
        "whose.",
        remedy="A method that sends no rows, such as llf over split rows.",
        detail="The other parties know the order in which rows are sent.",
    ),
    "single-feature-codes": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.ROWS,
        sentence="Each feature has codes of its own: a public sample of it shows the "
        "analyst its values up to a cell's width.",
        remedy="sub_dim 2 or more.",
        detail="The terms say sub_dim 1.",
    ),
    "codes-give-features": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.ROWS_JOINTLY,
        sentence="Anyone with these codes who knows a few of your rows can read the "
        "features of the others.",
        measured="On our tables R² was .3 to .9 with one coordinate, and .9 to 1 with "
        "all.",
        remedy="coordinates 1, the default.",
        detail="Several coordinates of each subspace are sent. An analyst who unmixes "
        "the codes comes near to that without any known row.",
    ),
    "noise-covers-one-row-once": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.STATISTICS,
        sentence="The noise protects one row in this session alone; further sessions, "
        "tables and rows of the same person add up.",
        remedy="The policy 'epsilon_total' caps all sessions over one table.",
        detail="The noise bounds what this session reveals of one row.",
    ),
}
