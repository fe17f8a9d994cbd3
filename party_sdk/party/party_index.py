"""The sessions of a home: where each stands, as this disk tells, and what is next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Row
from typing import Final

from clustering_protocols.engine import Journal
from clustering_protocols.wire.states import SessionState
from party_sdk.home.store import store_of

_PARTIES: Final = """
SELECT session, slot,
    identity IS NULL AS is_forgotten,
    coalesce(identity ->> '$.terms' ->> '$.about.title', '') AS title,
    identity ->> '$.ended' AS ended,
    identity ->> '$.token' IS NOT NULL AS has_joined,
    is_held,
    (SELECT journal FROM answers WHERE party = id) AS journal,
    EXISTS (SELECT * FROM documents WHERE party = id AND name = 'result') AS has_result,
    EXISTS (SELECT * FROM documents WHERE party = id AND name = 'agreement') AS has_agreement
FROM parties WHERE id IN (
    SELECT max(id) FROM parties WHERE identity IS NOT NULL OR is_forgotten
    GROUP BY session, slot
)
ORDER BY session, slot
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptParty:
    """A party that was in a session from this home.

    session, slot, title: the title is empty where the terms were forgotten.
    state: in a few words.
    following: the command that continues, or what else to do; empty where nothing is left
        to do.
    """

    session: str
    slot: str
    title: str
    state: str
    following: str


def sessions_in(home: Path) -> list[str]:
    """Return the sessions in which parties of a home were, in order."""
    found = store_of(home).rows("SELECT DISTINCT session FROM parties ORDER BY session")
    return [session for [session] in found]


def slots_of(home: Path, session: str) -> list[str]:
    """Return at which slots of a session parties of a home were, in order."""
    found = store_of(home).rows(
        "SELECT DISTINCT slot FROM parties WHERE session = ? ORDER BY slot", session
    )
    return [slot for [slot] in found]


def kept_parties(home: Path) -> Iterator[KeptParty]:
    """Yield the parties of a home by session and slot; the analyst is not asked."""
    for party in store_of(home).rows(_PARTIES):
        state, following = _describe_state(party)
        yield KeptParty(
            session=party["session"],
            slot=party["slot"],
            title=party["title"],
            state=state,
            following=following,
        )


def _describe_state(party: Row) -> tuple[str, str]:
    """Return where a party stands, and what comes next."""
    where = f"{party['session']} {party['slot']}"
    resume = f"coterie party run {where} --data FILE"
    if party["is_forgotten"]:
        return "forgotten", f"coterie party report {where}"
    if party["has_result"]:
        return SessionState.COMPLETED.value, f"coterie party report {where}"
    if party["ended"]:
        return party["ended"], f"coterie party forget {where}"
    journal = Journal.decode(party["journal"]) if party["journal"] else Journal()
    if journal.left:
        return "left", f"coterie party forget {where}"
    if journal.stopped:
        return "stopped: the analyst broke the rules", "tell the coordinator"
    if party["is_held"]:
        return "you refused a contribution", f"{resume} --confirm"
    if not party["has_joined"]:
        return "accepted, not joined", resume
    if not party["has_agreement"]:
        return "joined, others awaited", resume
    return f"round {journal.round} answered", resume
