"""Who learns what in `omnifc`, and its risk codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clustering_protocols.terms.risks import Harm, Risk, RiskLevel

LEARNS: Final = {
    "analyst": (
        "Numbers of rows and features, the distances between all rows, and with them "
        "the rows up to a rotation, a reflection and a shift; rounded features as they "
        "are, up to sign and offset. It alone computes the clusters, which no party "
        "can check."
    ),
    "party": (
        "The cluster of each of its rows, the sizes of all clusters and, where "
        "parties pool them, mean and standard deviation (minmax: range) of each "
        "feature over all parties."
    ),
    "as many parties as `noise` says, together": "Nothing more.",
    "coordinator": "Cluster sizes, positions of the starts, the precision.",
}
RISKS: Final[Mapping[str, Risk]] = {
    "by-design": Risk(
        level=RiskLevel.DESIGN,
        harm=Harm.GEOMETRY,
        sentence="The analyst learns the distances between all rows: the data up to "
        "rotation, reflection and shift.",
        measured="In rounded numbers a search found all 27 features of three tables, "
        "and none of 34 of two.",
        remedy="A method that sends no rows, such as llf over split rows.",
        detail="Features of two values (yes or no) and imputed missing values show "
        "there. Where numbers are rounded, as measurements are, the analyst may find "
        "the features in the distances alone, but for signs and an offset.",
        readers=tuple(LEARNS.items()),
    ),
    "collusion": Risk(
        level=RiskLevel.COLLUSION,
        harm=Harm.ROWS_JOINTLY,
        sentence="Parties beyond `noise` that collude learn about your rows; an analyst "
        "with enough known rows, or one party's, computes all others.",
        remedy="A larger `noise`, which needs more parties.",
        detail="If as many collude as `segments` and `noise` together, they rebuild "
        "your rows. One row more than there are features is enough for who has the "
        "distances, of any party, and so are the landmarks where these are drawn. An "
        "analyst that colludes with a party also reads pooled totals, and can falsify "
        "them.",
    ),
    "analyst-learns-segments-distances": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.ROWS,
        sentence="The analyst also learns the distances within each segment; a segment "
        "of one feature shows its values up to sign and shift.",
        remedy="hide_segments true, the default.",
        detail="It learns combinations of segments too.",
    ),
}
