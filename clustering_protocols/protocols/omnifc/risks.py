"""The risk codes of `omnifc`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clustering_protocols.shared_stages import shared_risks
from clustering_protocols.shared_stages.statistics import pooling
from clustering_protocols.terms.risks import Harm, Risk, RiskLevel

RISKS: Final[Mapping[str, Risk]] = {
    "distances-are-data-up-to-motion": Risk(
        level=RiskLevel.METHOD,
        harm=Harm.GEOMETRY,
        sentence="The analyst learns the distances between all rows: the data up to "
        "rotation, reflection and shift.",
        measured="In rounded numbers a search found all 27 features of three tables, "
        "and none of 34 of two.",
        remedy="A method that sends no rows, such as llf over split rows.",
        detail="Features of two values (yes or no) and imputed missing values show "
        "there. Where numbers are rounded, as measurements are, the analyst may find "
        "the features in the distances alone, but for signs and an offset. Anyone who has these distances and knows enough rows computes all other "
        "rows. One row more than there are features is enough, of any party, and so "
        "are the landmarks where these are drawn.",
    ),
    "analyst-learns-segments-distances": Risk(
        level=RiskLevel.SESSION,
        harm=Harm.ROWS,
        sentence="The analyst also learns the distances within each segment; a segment "
        "of one feature shows its values up to sign and shift.",
        remedy="hide_segments true, the default.",
        detail="It learns combinations of segments too.",
    ),
    "colluding-parties-open-rows": Risk(
        level=RiskLevel.METHOD,
        harm=Harm.ROWS_JOINTLY,
        sentence="If more parties collude than `noise` says, they learn about your "
        "rows.",
        remedy="A larger `noise`, which needs more parties.",
        detail="If as many collude as `segments` and `noise` together, they rebuild "
        "your rows.",
    ),
    pooling.RISK_CODE: Risk(
        level=RiskLevel.SESSION,
        harm=Harm.STATISTICS,
        sentence="The first party reads your number of rows and the range of each of "
        "your features.",
        remedy="Ranges in the dictionary (ranges 'declared').",
    ),
    **shared_risks.RISKS,
}
