"""The properties of a risk, and the risks that a session of any protocol can have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final, TypeVar

from clustering_protocols.terms.preparation import ColumnPlan
from clustering_protocols.terms.sections import Release
from clustering_protocols.terms.terms import Identities, Layout

K = TypeVar("K")


class RiskLevel(StrEnum):
    """The origin of a risk; terms sheets list risks in this order."""

    OPTION = "option"  # due to an option; another choice would remove the risk
    COLLUSION = "collusion"  # needs parties that collude or lie
    DESIGN = "by-design"  # inherent in every session of the protocol


class Harm(IntEnum):
    """The worst harm that can follow from a risk, in descending order."""

    ROWS = 1  # a single other participant reads or computes values of rows
    ROWS_JOINTLY = 2  # as above, but two must collude or one must know some rows
    GEOMETRY = 3  # relative positions of rows, or the group of each row
    STATISTICS = 4  # means, counts and sums over several rows
    RESULT = 5  # the result is wrong or missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """Something that a session allows others to learn or do.

    sentence: a description of at most 25 words.
    remedy: the change that would remove the risk.
    measured: what was disclosed in our experiments, in numbers; empty if not measured.
    detail: when, how and to what extent, for the annex; empty if the sentence suffices.
    readers: for a risk by design, each reader and what it learns.
    """

    sentence: str
    level: RiskLevel
    harm: Harm
    remedy: str
    measured: str = ""
    detail: str = ""
    readers: tuple[tuple[str, str], ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """Return all non-empty texts of the risk that are shown to people."""
        texts = (self.sentence, self.measured, self.remedy, self.detail)
        return tuple(filter(None, (*texts, *(text for _, text in self.readers))))


def worst_first(risks: Mapping[K, Risk]) -> dict[K, Risk]:
    """Return the risks sorted by harm, with the worst first."""
    return dict(sorted(risks.items(), key=lambda item: item[1].harm))


def risk_sentences(risks: Mapping[K, Risk]) -> dict[K, str]:
    """Return the sentence of each risk."""
    return {code: risk.sentence for code, risk in risks.items()}


PREFIX: Final = "house"

BY_DESIGN: Final = f"{PREFIX}.by-design"
TWO_PARTIES: Final = f"{PREFIX}.two-parties"
SOLVABLE: Final = f"{PREFIX}.rows-can-be-computed"
POOLED_RANGES: Final = f"{PREFIX}.pooled-ranges"
BY_POSITION: Final = f"{PREFIX}.rows-by-position"
COMMON_IDS: Final = f"{PREFIX}.common-ids"
LINKED_PEOPLE: Final = f"{PREFIX}.linked-people"
GUESSED_PEOPLE: Final = f"{PREFIX}.guessed-people"

_BY_IDS_AT_HOME: Final = (
    "Tables that hold the same people already (alignment.method 'declared')."
)

RISKS: Final[Mapping[str, Risk]] = {
    BY_DESIGN: Risk(
        level=RiskLevel.DESIGN,
        harm=Harm.ROWS_JOINTLY,
        sentence="The analyst can withhold results; nobody checks that other parties and "
        "their rows are real; the first party of each group draws its secrets.",
        remedy="Nothing. Exchange cards (policy 'least_known'), and give the first "
        "slot of each group to a party that everyone trusts.",
        detail="Your institution accepts this once for all sessions.",
        readers=(
            (
                "analyst",
                (
                    "Who takes part and when. It can end the session, or report that a "
                    "party was late."
                ),
            ),
            (
                "first party of each group",
                (
                    "The secrets that hide totals and row order and, under some terms, the "
                    "start or the anchors. If it leaks the secrets, they hide nothing."
                ),
            ),
            (
                "other parties",
                (
                    "The totals that parties compute together. A party that lies spoils "
                    "everybody's result. If the coordinator invented all other parties, "
                    "it can subtract their shares from a total and read yours."
                ),
            ),
            (
                "a thief of your disk",
                (
                    "Messages to you, until the keys of the session are deleted with its "
                    "result."
                ),
            ),
        ),
    ),
    f"{PREFIX}.open-slot": Risk(
        level=RiskLevel.COLLUSION,
        harm=Harm.ROWS_JOINTLY,
        sentence="A slot names no institution: anyone who holds its invitation can "
        "take that slot under any name.",
        remedy="The coordinator names the institution of every slot (--expect).",
        detail="An analyst who colludes with one party, or with the coordinator, can "
        "take all such slots but yours and read what you send them.",
    ),
    SOLVABLE: Risk(
        level=RiskLevel.OPTION,
        harm=Harm.ROWS,
        sentence="Other parties can compute your rows: the totals that they read give as "
        "many equations as your rows have values that they do not know.",
        measured="In fccm, one site recovered 85 to 100 % of 24 to 45 yes-or-no columns, "
        "with every object right; in fuzzy llf, one party recovered all rows.",
        remedy="The defaults: small_cohorts 'refuse' in fccm and llf, output 'labels' "
        "in dc.",
        detail="A party subtracts its own share from each total. Where columns are split, "
        "it learns whose row is whose, but not which column is which variable.",
    ),
    f"{PREFIX}.filled-values": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.STATISTICS,
        sentence="Parties of your column group learn the means, medians or most "
        "frequent levels that replace missing values, and how many values there are.",
        remedy="Leave out rows with missing values (--missing drop).",
        detail="These statistics cover the rows of all parties. Parties of the same column "
        "group also learn how many values each such variable has in total, and how many "
        "rows have each level. A median needs a histogram: they read how many rows of all "
        "parties lie in each thousandth of the variable's range, and again in each "
        "thousandth of the bin with the median; single bins may hold few rows. A party "
        "with fewer values of a variable than the terms' minimum_rows contributes none.",
    ),
    f"{PREFIX}.site-effects": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.STATISTICS,
        sentence="Parties of your column group learn how variables depend on the "
        "covariates over all rows, and the standard deviations that remain.",
        remedy="Terms that remove no site effects.",
        detail="They read the covariates' sums and products, regression coefficients and "
        "residual variances of all rows together. Your site's own effects never leave your "
        "site. If all others collude, they can subtract their own sums and read yours; the "
        "count of rows that can be derived from sums ignores sums weighted by covariates. A "
        "covariate with a level that few of your rows have is refused.",
    ),
    f"{PREFIX}.profiles": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.STATISTICS,
        sentence="Parties of your column group read exact cluster profiles; two such "
        "sessions over nearly the same rows reveal the rows that differ.",
        remedy="Terms without profiles.",
        detail="A profile has numbers of rows, means, standard deviations, proportions of "
        "levels, and the number of values in each part of a grid. A party that holds nearly "
        "all rows of a cluster can compute the rest. Anyone who subtracts profiles of "
        "two sessions over nearly the same rows, or over the same rows in other clusters, "
        "can compute them too. A party that colludes can show profiles to the analyst: if the analyst "
        "has the rows up to a motion, the two then have all rows. Clusters of few rows are "
        "merged into one.",
    ),
    f"{PREFIX}.profiles-told": Risk(
        level=RiskLevel.OPTION,
        harm=Harm.STATISTICS,
        sentence="All parties, the coordinator and the analyst read rounded profiles of "
        "clusters with enough rows.",
        remedy="Profiles for members alone (--profiles members), or none.",
        detail="They cover all variables that three parties or more hold. They have "
        "numbers of rows, means, standard deviations, quartiles and proportions of levels. "
        "Rows are rounded to multiples of five. Means and standard deviations are rounded "
        "to about a twentieth of a variable's standard deviation. Proportions and quartiles "
        "are rounded to about a twentieth of a cluster's rows.",
    ),
    TWO_PARTIES: Risk(
        level=RiskLevel.OPTION,
        harm=Harm.STATISTICS,
        sentence="Only two parties hold the same columns: each subtracts its own share from "
        "pooled totals and reads the other's counts, sums, means and standard deviations.",
        remedy="A third party that holds the same columns.",
    ),
    POOLED_RANGES: Risk(
        level=RiskLevel.OPTION,
        harm=Harm.STATISTICS,
        sentence="The first party of your column group reads the range of each of your "
        "features.",
        remedy="Ranges in the dictionary (ranges 'declared').",
        detail="This holds for any number of parties, as ranges cannot be added up.",
    ),
    BY_POSITION: Risk(
        level=RiskLevel.OPTION,
        harm=Harm.RESULT,
        sentence="Rows are matched by position: if one table is sorted differently, values "
        "of different people are clustered as one row.",
        remedy="Rows with ids (alignment.method 'declared' or 'ecdh').",
        detail="Nothing checks that row i is the same person in all tables of your row "
        "group.",
    ),
    COMMON_IDS: Risk(
        level=RiskLevel.OPTION,
        harm=Harm.GEOMETRY,
        sentence="Each party of your row group learns which of its rows all others "
        "hold; the analyst learns how many ids they share.",
        remedy=_BY_IDS_AT_HOME,
        detail="With three or more parties, the analyst also learns how many ids each "
        "pair shares.",
    ),
    LINKED_PEOPLE: Risk(
        level=RiskLevel.OPTION,
        harm=Harm.GEOMETRY,
        sentence="The analyst links rows by match keys, which nobody checks, and sees "
        "which keys agree; parties learn which rows all others hold.",
        remedy=_BY_IDS_AT_HOME,
        detail="It does not learn who a row is, but how many people each party has and "
        "how many they have in common. If it colludes with a party of your row group, the "
        "two learn who has moved or changed a name. If it links rows of different people, "
        "parties cannot notice: cells of one person differ between tables, too.",
    ),
    GUESSED_PEOPLE: Risk(
        level=RiskLevel.COLLUSION,
        harm=Harm.ROWS_JOINTLY,
        sentence="A party whose people are compared with yours can guess people; with "
        "the analyst, it learns which of them you have.",
        measured="With match keys, in a synthetic city of 100,000 people it identified "
        "62 % of those not in common (12 keys, 5,000 rows).",
        remedy=f"{_BY_IDS_AT_HOME} The policy 'ids_per_row' caps the number of guesses.",
        detail="It can enter one guess for each of its rows, or with match keys for each "
        "row and key, and learns by itself which of them all others have. Nobody can test "
        "more: all other parties together, with the analyst, have as many guesses as their "
        "rows and keys, which your policy caps for each as a multiple of your rows.",
    ),
}
"""Risks that are not specific to a protocol, by their codes."""


OTHER_UNITS: Final = "allow_other_units"
SMALL_OVERLAP: Final = "allow_small_overlap"
SHOWN_TOGETHER: Final = "allow_shown_together"
SUMS_LIMIT: Final = "sums_limit"
ONE_FIELD: Final = "allow_one_field"
GIVEN_START: Final = "allow_given_start"

CHOICES: Final[Mapping[str, str]] = {
    OTHER_UNITS: (
        "Continue although your columns differ from those of the others as much as if "
        "they were in different units."
    ),
    SMALL_OVERLAP: (
        "Continue although your row group has fewer common rows than the terms expect."
    ),
    SHOWN_TOGETHER: (
        "Continue although the same analyst, coordinator or party received other data "
        "about these rows before. With both, it can compute these rows."
    ),
    SUMS_LIMIT: (
        "The largest fraction of your rows that others could derive from the sums that "
        "you send, if all collude. The default is 0.25; 0 allows none, 1 sets no limit."
    ),
    ONE_FIELD: (
        "Upload rows although one variable makes up nearly the whole distance between "
        "them. The analyst can then read the values of this variable."
    ),
    GIVEN_START: (
        "Add up your rows around points that the coordinator chose, although few of your "
        "rows are near one of them. Other parties may then read these rows."
    ),
}
"""Choices that each party makes alone in any protocol."""

LIMITS: Final = frozenset(CHOICES)
"""The choices that only decide whether an answer may be sent, which are all of them."""


def find_risk_codes(
    layout: Layout,
    identities: Identities,
    plans: Sequence[ColumnPlan],
    release: Release | None,
) -> set[str]:
    """Return the codes of the risks that follow from these parts of the terms."""
    codes = set()
    if any(name not in identities.slots for name in layout.names):
        codes.add(f"{PREFIX}.open-slot")
    if any(plan.harmonised.any() for plan in plans):
        codes.add(f"{PREFIX}.site-effects")
    for column, plan in enumerate(plans):
        n_members = len(layout.column_group(column))
        if plan.fills and n_members > 1:  # a single party pools nothing
            codes.add(f"{PREFIX}.filled-values")
            if n_members == 2:
                codes.add(TWO_PARTIES)
    if release is not None and any(map(layout.can_pool, range(layout.n_column_groups))):
        codes.add(f"{PREFIX}.profiles")
        if release.profiles == "everybody":
            codes.add(f"{PREFIX}.profiles-told")
    return codes
