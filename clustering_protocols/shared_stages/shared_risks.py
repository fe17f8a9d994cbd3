"""Risks that several protocols have alike: what no check of a party rules out.

A protocol adds :data:`RISKS` to its own sentences and asks :func:`brought` which of them
a session brings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clustering_protocols.terms.risks import Harm, Risk, RiskLevel
from clustering_protocols.terms.terms import Layout

_MEMBER: Final = "analyst-with-a-member-chooses-totals"
_LABELS: Final = "clusters-are-the-analysts-word"
_FIRST: Final = "first-slot-chooses-secrets"
_MEMBERS: Final = "members-may-lie-or-be-invented"

RISKS: Final[Mapping[str, Risk]] = {
    _MEMBER: Risk(
        level=RiskLevel.METHOD,
        harm=Harm.ROWS_JOINTLY,
        sentence="If the analyst colludes with a party, the two read the totals of that "
        "party's groups, and can falsify them.",
        remedy="Nothing. An analyst that belongs to no party makes it less likely.",
        detail="They can choose these totals because that party can send its share "
        "last, and as large as it likes.",
    ),
    _LABELS: Risk(
        level=RiskLevel.METHOD,
        harm=Harm.RESULT,
        sentence="Only the analyst computes the clusters; no party can check them.",
        remedy="A method whose parties compute the labels themselves: llf over split "
        "rows, or fccm.",
    ),
    _FIRST: Risk(
        level=RiskLevel.ALWAYS,
        harm=Harm.ROWS_JOINTLY,
        sentence="The first party of each group draws its secrets; if it leaks or "
        "chooses them, they hide totals and row order no longer.",
        remedy="Nothing. The coordinator can give the first place of each "
        "group to a party that all trust.",
        detail="Where the terms say so, the first party also draws the start or the "
        "anchors.",
    ),
    _MEMBERS: Risk(
        level=RiskLevel.ALWAYS,
        harm=Harm.ROWS_JOINTLY,
        sentence="Nobody checks other parties' rows, or that they exist; your numbers "
        "hide only among those of parties that you know.",
        remedy="Nothing. Exchange cards: the policy 'least_known' says how "
        "many others you must know.",
        detail="One dishonest party spoils the result of all. Parties that the "
        "coordinator invented read the rest of every sum, which is your sum. With llf "
        "over rows, they compute up to 'sums_limit' of your rows.",
    ),
    "analyst-may-withhold-or-end": Risk(
        level=RiskLevel.ALWAYS,
        harm=Harm.RESULT,
        sentence="The analyst can withhold results or end the session; a party's "
        "stolen disk opens its messages until its keys are deleted.",
        remedy="Nothing. Keep the home on an encrypted disk.",
        detail="The analyst can also report that a party was late. Keys of a session "
        "are deleted once its result is there.",
    ),
}
"""The shared risk codes."""


def brought(layout: Layout, *, totals: bool, labels: bool) -> list[str]:
    """Return the shared risk codes that a session brings, in their order.

    layout: who is alone has no other to mistrust but the analyst.
    totals: whether parties read totals of masked sums.
    labels: whether the analyst finds the clusters.
    """
    alone = len(layout.slots) == 1
    left_out = {
        _MEMBER: alone or not totals,
        _LABELS: not labels,
        _FIRST: alone,
        _MEMBERS: alone,
    }
    return [code for code in RISKS if not left_out.get(code, False)]
