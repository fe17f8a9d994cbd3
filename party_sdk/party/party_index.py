"""The sessions of a home: where each stands, as this disk tells, and what is next."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from sqlite3 import Row
from typing import Any, Final

from clustering_protocols.wire.states import OVER, SessionState
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


def all_parties(home: Path) -> Iterator[KeptParty]:
    """Yield each party by session and slot; of an order of the desk, where that stands."""
    parties = {(party.session, party.slot): party for party in kept_parties(home)}
    for [stored] in store_of(home).rows("SELECT status FROM orders"):
        status = json.loads(stored)
        key, state = (status["session"], status["slot"]), status["state"]
        party, described = parties.get(key), _describe_order(status)
        if party and party.state in OVER and state == SessionState.FAILED:
            parties[key] = replace(party, state=described)
            continue
        is_done = state == SessionState.COMPLETED
        parties[key] = KeptParty(
            session=key[0],
            slot=key[1],
            title=status["title"] if party is None else party.title,
            state=described,
            following=f"coterie party report {' '.join(key)}"
            if is_done
            else "coterie ui",
        )
    yield from (parties[key] for key in sorted(parties))


def _describe_order(status: Mapping[str, Any]) -> str:
    """Return where an order stands, in a few words."""
    is_over = status["ended_at"] is not None
    place = f", round {status['round']}" if status["round"] and not is_over else ""
    out = ", the analyst cannot be reached" if status["outage_since"] else ""
    trouble = status["trouble"]
    why = f": {trouble['headline']}" if trouble else ""
    return f"{status['state']}{place}{out}{why}"


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
    # not above: lists of parties that are not under way need no arrays
    from clustering_protocols.engine import Journal

    journal = Journal.decode(party["journal"]) if party["journal"] else Journal()
    if journal.left:
        return "left", f"coterie party forget {where}"
    if journal.stopped:
        return "stopped: the analyst broke the rules", "tell the coordinator"
    if party["is_held"]:
        return "you refused a contribution", resume
    if not party["has_joined"]:
        return "accepted, not joined", resume
    if not party["has_agreement"]:
        return "joined, others awaited", resume
    return f"round {journal.round} answered", resume
