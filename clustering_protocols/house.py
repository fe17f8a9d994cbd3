"""Risks that belong to no protocol: what a session's own set-up lets others do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from clustering_protocols.recipe import Plan
from clustering_protocols.release import Release
from clustering_protocols.terms import Identities, Layout

PREFIX: Final = "house"

RISKS: Final[Mapping[str, str]] = {
    "open-slot": (
        "The terms name no institution for some slot: whoever holds an invitation to it "
        "may sit there under any name, and an analyst who works together with one party, "
        "or with the coordinator, may sit in all such slots but yours and read what you "
        "send them."
    ),
    "filled-values": (
        "Missing values are filled with a mean, a median or the most frequent level of "
        "the rows of all parties: those that hold the same columns learn these, how many "
        "values of each such field there are together, and how many rows have each level. Of "
        "a party with fewer values of a field than the terms' minimum_rows, none are in it."
    ),
    "medians-show-counts": (
        "Fillings by a median show the parties that hold the same columns how many rows "
        "of all lie in each thousandth of the field's range, and in each thousandth of "
        "those where the median lies: few rows may lie there."
    ),
    "profiles": (
        "Parties that hold the same columns (three at least) learn exactly what the "
        "clusters are like in them: rows, means, spreads, shares of levels, and how many "
        "values lie in each part of a grid. A party that holds nearly all rows of a "
        "cluster reads the rest of it; so does whoever takes one such session off another "
        "over nearly the same rows, or over the same rows in other clusters, and an "
        "analyst who works together with a party. With protocols that show the analyst "
        "rows up to a motion, the two then have all rows. "
        "Clusters of few rows are told together, as one."
    ),
    "profiles-told": (
        "All parties, the coordinator and the analyst read, of each cluster of enough rows, means, "
        "spreads and quartiles of all fields that three parties or more hold, and shares "
        "of their levels: rounded to about a twentieth of a field's spread, and of a "
        "cluster's rows."
    ),
    "two-parties-fill": (
        "Two parties alone hold the same columns: each can take its own numbers off what "
        "is pooled to fill gaps, and reads the other's counts, means and medians."
    ),
}
"""Sentences of the house's risk codes."""


OTHER_UNITS: Final = "allow_other_units"
SMALL_OVERLAP: Final = "allow_small_overlap"
SHOWN_TOGETHER: Final = "allow_shown_together"
SUMS_LIMIT: Final = "sums_limit"
ONE_FIELD: Final = "allow_one_field"

CHOICES: Final[Mapping[str, str]] = {
    OTHER_UNITS: (
        "Go on although columns here lie as far from those of the others as columns in "
        "other units do."
    ),
    SMALL_OVERLAP: (
        "Go on although fewer rows are common to your row group than the terms expect."
    ),
    SHOWN_TOGETHER: (
        "Go on although the same analyst or coordinator got something of these rows "
        "before, with which it can compute them."
    ),
    SUMS_LIMIT: (
        "The largest share of your rows that may follow from the sums that you answer, "
        "if all others work together: 0.25 by default, and three rows at least; 1 for no "
        "limit."
    ),
    ONE_FIELD: (
        "Upload rows although one field makes up nearly the whole distance between them, "
        "so that the analyst reads its values."
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
    plans: Sequence[Plan] = (),
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


def _of_fillings(plan: Plan, n_members: int) -> Iterator[str]:
    """Yield what the fillings of a column group show; a party that is alone asks nobody."""
    if n_members == 1 or not plan.fills:
        return
    yield "filled-values"
    if any(fill.how == "median" for fill in plan.fills):
        yield "medians-show-counts"
    if n_members == 2:
        yield "two-parties-fill"
