"""Risks that belong to no protocol: what a session's own set-up lets others do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from clustering_protocols.terms.preparation import ColumnPlan
from clustering_protocols.terms.release import Release
from clustering_protocols.terms.risks import Harm, Risk, RiskLevel
from clustering_protocols.terms.terms import Identities, Layout

PREFIX: Final = "house"

RISKS: Final[Mapping[str, Risk]] = {
    "open-slot": Risk(
        level=RiskLevel.SESSION,
        harm=Harm.ROWS_JOINTLY,
        sentence="Some slot names no institution: anyone who holds its invitation can "
        "take that slot under any name.",
        remedy="The coordinator names the institution of every slot (--expect).",
        detail="An analyst who colludes with one party, or with the coordinator, can "
        "take all such slots but yours and read what you send them.",
    ),
    "filled-values": Risk(
        level=RiskLevel.SESSION,
        harm=Harm.STATISTICS,
        sentence="Parties of your column group learn the means, medians or most "
        "frequent levels that replace missing values, and how many there are.",
        remedy="Rows with missing values are left out (--missing drop).",
        detail="Values are of the rows of all parties. Parties of the same column group "
        "also learn how many values each such variable has in total, and how many rows "
        "have each level. A party with fewer values of a variable than the terms' "
        "minimum_rows contributes none of them.",
    ),
    "medians-show-counts": Risk(
        level=RiskLevel.SESSION,
        harm=Harm.STATISTICS,
        sentence="Imputation by the median shows parties of your column group a "
        "histogram of each variable; single bins may hold few rows.",
        remedy="Imputation by the mean (--missing mean), or none.",
        detail="They read how many rows of all parties lie in each thousandth of the "
        "variable's range. Each thousandth in which the median lies is divided into "
        "thousandths once more and counted.",
    ),
    "profiles": Risk(
        level=RiskLevel.SESSION,
        harm=Harm.STATISTICS,
        sentence="Parties of your column group read exact cluster profiles; two such "
        "sessions over nearly the same rows show the rows that differ.",
        remedy="Terms without profiles.",
        detail="A profile has rows, means, standard deviations, shares of levels, and "
        "the number of values in each part of a grid. A party that holds nearly all "
        "rows of a cluster reads the rest of it. So does anyone who subtracts one such "
        "session from another over nearly the same rows, or over the same rows in other "
        "clusters. So does an analyst who colludes with a party. With protocols that "
        "show the analyst rows up to a motion, the two then have all rows. Clusters of "
        "few rows are merged into one.",
    ),
    "profiles-told": Risk(
        level=RiskLevel.SESSION,
        harm=Harm.STATISTICS,
        sentence="All parties, the coordinator and the analyst read rounded profiles of "
        "clusters with enough rows.",
        remedy="Profiles for members alone (--profiles members), or none.",
        detail="They cover all variables that three parties or more hold. They have "
        "means, standard deviations and quartiles, and the shares of levels. Means and "
        "standard deviations are rounded to about a twentieth of a variable's standard "
        "deviation. Shares and quartiles are rounded to about a twentieth of a "
        "cluster's rows.",
    ),
    "two-parties-fill": Risk(
        level=RiskLevel.SESSION,
        harm=Harm.STATISTICS,
        sentence="Only two parties hold the same columns: for imputation, each reads "
        "the other's counts, means and medians.",
        remedy="A third party with the same columns, or rows with missing values are "
        "left out (--missing drop).",
    ),
}
"""The house's risk codes."""


OTHER_UNITS: Final = "allow_other_units"
SMALL_OVERLAP: Final = "allow_small_overlap"
SHOWN_TOGETHER: Final = "allow_shown_together"
SUMS_LIMIT: Final = "sums_limit"
ONE_FIELD: Final = "allow_one_field"

CHOICES: Final[Mapping[str, str]] = {
    OTHER_UNITS: (
        "Go on although your columns differ from those of the others as much as "
        "columns in other units do."
    ),
    SMALL_OVERLAP: (
        "Go on although your row group has fewer rows in common than the terms expect."
    ),
    SHOWN_TOGETHER: (
        "Go on although the same analyst, coordinator or party received something of "
        "these rows before. With both, it can compute these rows."
    ),
    SUMS_LIMIT: (
        "The largest share of your rows that may follow from the sums that you send, "
        "if all others collude. The default is 0.25, and three rows at least; 1 sets "
        "no limit."
    ),
    ONE_FIELD: (
        "Upload rows although one variable makes up nearly the whole distance between "
        "them. The analyst can then read the values of this variable."
    ),
}
"""What a party may decide alone in any protocol."""

LIMITS: Final = frozenset(
    {OTHER_UNITS, SMALL_OVERLAP, SHOWN_TOGETHER, SUMS_LIMIT, ONE_FIELD}
)
"""Those that say only whether an answer may leave."""


def risks_of(
    layout: Layout,
    identities: Identities,
    plans: Sequence[ColumnPlan] = (),
    release: Release | None = None,
) -> tuple[str, ...]:
    """Return the codes, without the prefix, that the parts of terms bring."""
    found: dict[str, None] = {}
    if any(name not in identities.slots for name in layout.names):
        found["open-slot"] = None
    for column, plan in enumerate(plans):
        found |= dict.fromkeys(_of_fillings(plan, len(layout.column_group(column))))
    if release is not None and any(map(layout.adds_up, range(layout.n_column_groups))):
        found["profiles"] = None
        if release.profiles == "everybody":
            found["profiles-told"] = None
    return tuple(code for code in RISKS if code in found)


def _of_fillings(plan: ColumnPlan, n_members: int) -> Iterator[str]:
    """Yield what the fillings of a column group show; a party that is alone asks nobody."""
    if n_members == 1 or not plan.fills:
        return
    yield "filled-values"
    if any(fill.how == "median" for fill in plan.fills):
        yield "medians-show-counts"
    if n_members == 2:
        yield "two-parties-fill"
