"""Risks that several protocols have alike: what no check of a party rules out.

A protocol adds :data:`RISKS` to its own sentences and asks :func:`brought` which of them
a session brings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clustering_protocols.terms.terms import Layout

_MEMBER: Final = "analyst-with-a-member-chooses-totals"
_LABELS: Final = "clusters-are-the-analysts-word"
_FIRST: Final = "first-slot-chooses-secrets"
_MEMBERS: Final = "members-may-lie-or-be-invented"

RISKS: Final[Mapping[str, str]] = {
    _MEMBER: (
        "If the analyst colludes with a party, the two read the totals of that "
        "party's groups. They can also choose these totals, because that party can "
        "send its share last, and as large as it likes."
    ),
    _LABELS: (
        "You have only the analyst's word for the clusters. No party can check what "
        "the analyst computed them from."
    ),
    _FIRST: (
        "The leader (first party) of each group draws the secrets that hide totals "
        "and the order of rows. Where the terms say so, it also draws the start or "
        "the anchors. It can give these away or choose them."
    ),
    _MEMBERS: (
        "Nothing checks that the rows of other parties are true, or that the "
        "coordinator plays none of the parties itself. One dishonest party spoils the "
        "result of all. Your numbers are hidden only among those of parties that you "
        "know. Parties that the coordinator invented read the rest of every sum, "
        "which is your sum. With llf over rows, they compute up to 'sums_limit' of "
        "your rows."
    ),
    "analyst-may-withhold-or-end": (
        "The analyst can withhold results, report that a party was late, and end the "
        "session. Anyone who obtains a party's disk can decrypt what it sent and "
        "received, until its keys are deleted."
    ),
}
"""Sentences of the shared risk codes."""


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
