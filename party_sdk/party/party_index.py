"""The parties of a home, with the state of each on this disk, and what to do next."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from sqlite3 import Row
from typing import Any, Final, Literal

from clustering_protocols.wire.states import SessionState
from party_sdk.home.store import store_of

_PARTIES: Final = """
SELECT session, slot,
    is_forgotten,
    coalesce(identity ->> '$.terms' ->> '$.about.title', '') AS title,
    coalesce(identity ->> '$.terms' ->> '$.protocol.name', '') AS protocol,
    identity ->> '$.ended' AS ended,
    identity ->> '$.token' IS NOT NULL AS has_joined,
    consent ->> '$.is_held' AS is_held,
    (SELECT journal FROM answers WHERE party = id) AS journal,
    EXISTS (SELECT * FROM documents WHERE party = id AND name = 'result') AS has_result,
    EXISTS (SELECT * FROM documents WHERE party = id AND name = 'agreement') AS has_agreement,
    status,
    content ->> '$.table' IS NOT NULL AS has_table,
    question ->> '$.sentence' AS question
FROM parties LEFT JOIN orders ON orders.party = id WHERE id IN (
    SELECT max(id) FROM parties
    WHERE identity IS NOT NULL OR is_forgotten OR id IN (SELECT party FROM orders)
    GROUP BY session, slot
)
ORDER BY session, slot
"""
_BEGUN: Final = "It began on the command line; it continues here once it has a table."

Group = Literal["asks", "runs", "ended"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartySummary:
    """A party of this home, as lists show it.

    title, protocol: of the session; empty if the terms are not stored.
    state: the state in a few words.
    group: whether the party waits for its operator, is running, or has ended.
    sentence: what the party waits for, or why its part in the session ended.
    since: when the party's order last changed; None without an order of the desk.
    following: the next command or other action; empty if there is nothing to do.
    """

    session: str
    slot: str
    title: str
    protocol: str
    state: str
    group: Group
    sentence: str
    since: datetime | None
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


def all_parties(home: Path) -> Iterator[PartySummary]:
    """Yield the parties of a home, sorted by session and slot, from this disk alone.

    A stored result or end is the party's state; otherwise it is that of its order, if
    it runs in the background. If the session failed, the order adds the reason.
    """
    for party in store_of(home).fetch_rows(_PARTIES):
        order = json.loads(party["status"]) if party["status"] else {}
        is_over, state, following = _describe_stored(party)
        group: Group = "ended" if is_over else "asks"
        sentence = "" if is_over else _BEGUN
        if order:
            if not is_over or order["trouble"]:
                sentence = _describe_order_status(party, order)
            if not is_over:
                state, following = _describe_order(order), "coterie ui"
                group = _group_of(party, order)
            elif state == SessionState.FAILED and order["trouble"]:
                state = _describe_order(order)
        if state == SessionState.COMPLETED:
            sentence = "The labels are ready."
        yield PartySummary(
            session=party["session"],
            slot=party["slot"],
            title=party["title"] or order.get("title", ""),
            protocol=party["protocol"] or order.get("protocol", ""),
            state=state,
            group=group,
            sentence=sentence,
            since=datetime.fromisoformat(order["changed_at"]) if order else None,
            following=following,
        )


def _group_of(party: Row, order: Mapping[str, Any]) -> Group:
    if order["ended_at"] is not None:
        return "ended"
    asks = party["question"] is not None or not party["has_table"]
    return "asks" if asks else "runs"


def _describe_order(order: Mapping[str, Any]) -> str:
    is_over = order["ended_at"] is not None
    round_text = f", round {order['round']}" if order["round"] and not is_over else ""
    outage = ", the analyst cannot answer now" if order["outage_since"] else ""
    trouble = order["trouble"]
    reason = f": {trouble['headline']}" if trouble else ""
    return f"{order['state']}{round_text}{outage}{reason}"


def _describe_order_status(party: Row, order: Mapping[str, Any]) -> str:
    if order["trouble"]:
        return str(order["trouble"]["detail"])
    if order["ended_at"] is not None:
        return ""
    if not party["has_table"]:
        return "Read the terms, and name your table."
    if party["question"] is not None:
        return str(party["question"])
    if order["outage_since"]:
        return "Requests to the analyst are being retried."
    awaited = ", ".join(order["awaited"])
    return f"Waiting for {awaited}." if awaited else ""


def _describe_stored(party: Row) -> tuple[bool, str, str]:
    """Return whether the party's part has ended, its state, and what to do next."""
    where = f"{party['session']} {party['slot']}"
    resume = f"coterie party run {where} --data FILE"
    forget = f"coterie party forget {where}"
    if party["is_forgotten"]:
        return True, "forgotten", f"coterie party report {where}"
    if party["has_result"]:
        return True, SessionState.COMPLETED.value, f"coterie party report {where}"
    if party["ended"]:
        return True, party["ended"], forget
    # Imported here, because it loads numpy, which only running parties need.
    from clustering_protocols.engine import Journal

    journal = Journal.decode(party["journal"]) if party["journal"] else Journal()
    if journal.left:
        return True, "left", forget
    if journal.stopped:
        return True, "stopped: the analyst broke the rules", "tell the coordinator"
    if party["is_held"]:
        return False, "you refused a contribution", resume
    if not party["has_joined"]:
        return False, "accepted, not joined", resume
    if not party["has_agreement"]:
        return False, "joined, waiting for others", resume
    return False, f"round {journal.round} answered", resume
