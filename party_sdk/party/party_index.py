"""The sessions of a home, with the state of each on this disk, and the next command."""

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
    consent ->> '$.is_held' AS is_held,
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
class PartySummary:
    """A party of this home, as lists show it.

    title: the title of the session; empty if the terms were forgotten.
    state: the state in a few words.
    following: the next command or other action; empty if there is nothing to do.
    """

    session: str
    slot: str
    title: str
    state: str
    following: str


def slots_of(home: Path, session: str) -> list[str]:
    """Return the slots that this home has or had in a session, sorted."""
    rows = store_of(home).fetch_rows(
        "SELECT DISTINCT slot FROM parties WHERE session = ? ORDER BY slot", session
    )
    return [slot for [slot] in rows]


def has_accepted(home: Path, risk: str) -> bool:
    """Return whether a stored party of this home accepted a risk with its terms."""
    statement = (
        "SELECT 1 FROM parties, json_each(identity, '$.accepted_risks') WHERE value = ?"
    )
    return store_of(home).fetch_row(statement, risk) is not None


def stored_parties(home: Path) -> Iterator[PartySummary]:
    """Yield the parties of a home, sorted by session and slot, from this disk alone."""
    for party in store_of(home).fetch_rows(_PARTIES):
        state, following = _describe_state(party)
        yield PartySummary(
            session=party["session"],
            slot=party["slot"],
            title=party["title"],
            state=state,
            following=following,
        )


def all_parties(home: Path) -> Iterator[PartySummary]:
    """Yield all parties of a home, sorted by session and slot.

    A party that runs in the background is listed with the state of its order.
    """
    parties = {(party.session, party.slot): party for party in stored_parties(home)}
    for [stored] in store_of(home).fetch_rows("SELECT status FROM orders"):
        status = json.loads(stored)
        key, state = (status["session"], status["slot"]), status["state"]
        party, description = parties.get(key), _describe_order(status)
        if party and party.state in OVER and state == SessionState.FAILED:
            parties[key] = replace(party, state=description)
            continue
        report = f"coterie party report {' '.join(key)}"
        parties[key] = PartySummary(
            session=key[0],
            slot=key[1],
            title=status["title"] if party is None else party.title,
            state=description,
            following=report if state == SessionState.COMPLETED else "coterie ui",
        )
    yield from (parties[key] for key in sorted(parties))


def _describe_order(status: Mapping[str, Any]) -> str:
    is_over = status["ended_at"] is not None
    round_text = f", round {status['round']}" if status["round"] and not is_over else ""
    outage = ", the analyst cannot answer now" if status["outage_since"] else ""
    trouble = status["trouble"]
    reason = f": {trouble['headline']}" if trouble else ""
    return f"{status['state']}{round_text}{outage}{reason}"


def _describe_state(party: Row) -> tuple[str, str]:
    where = f"{party['session']} {party['slot']}"
    resume = f"coterie party run {where} --data FILE"
    if party["is_forgotten"]:
        return "forgotten", f"coterie party report {where}"
    if party["has_result"]:
        return SessionState.COMPLETED.value, f"coterie party report {where}"
    if party["ended"]:
        return party["ended"], f"coterie party forget {where}"
    # Imported here, because it loads numpy, which only running parties need.
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
