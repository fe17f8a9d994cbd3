"""Risks that several protocols have alike: what no check of a party rules out.

A protocol adds :data:`RISKS` to its own sentences and asks :func:`brought` which of them
a session brings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clustering_protocols.terms import Layout

_MEMBER: Final = "analyst-with-a-member-chooses-totals"
_LABELS: Final = "clusters-are-the-analysts-word"
_FIRST: Final = "first-slot-chooses-secrets"
_MEMBERS: Final = "members-may-lie-or-be-invented"

RISKS: Final[Mapping[str, str]] = {
    _MEMBER: (
        "An analyst together with one party reads the totals of that party's groups and "
        "can choose them: that party sends its share last, and as large as it likes."
    ),
    _LABELS: (
        "The clusters are the analyst's word: no party can check what it made them of."
    ),
    _FIRST: (
        "The leader (first party) of each group draws what hides totals and the order of "
        "rows, and where the terms say so the start or the anchors: it can give these "
        "away or choose them."
    ),
    _MEMBERS: (
        "Nothing checks that the rows of others are true, or that the coordinator plays "
        "none of the parties itself: one that lies spoils the result of all, and only "
        "members whom you know hide your numbers among theirs. Members that the "
        "coordinator invented read the rest of every sum: your sums, and of llf over rows "
        "up to 'sums_limit' of your rows."
    ),
    "analyst-may-withhold-or-end": (
        "The analyst can withhold results, say that a party came late, and end the "
        "session. Who gets hold of a party's disk can open what it sent and got, until "
        "its keys are deleted."
    ),
}
"""Sentences of the shared risk codes."""


def brought(layout: Layout, *, totals: bool, labels: bool) -> list[str]:
    """Return the shared risk codes that a session brings, in their order.

    Parameters
    ----------
    layout : Layout
        Who is alone has no other to mistrust but the analyst.
    totals : bool
        Whether parties read totals of masked sums.
    labels : bool
        Whether the analyst finds the clusters.
    """
    alone = len(layout.slots) == 1
    left_out = {
        _MEMBER: alone or not totals,
        _LABELS: not labels,
        _FIRST: alone,
        _MEMBERS: alone,
    }
    return [code for code in RISKS if not left_out.get(code, False)]
