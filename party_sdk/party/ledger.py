"""What left a party, under which context, and what the analyst said it got.

A chain of lines (:mod:`clustering_protocols.records.hash_chain`). What is to leave is
stored in the transaction of the answer, before its first byte leaves; the receipt follows
when it comes. So the log tells everything that may have left, even after a crash.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from clustering_protocols.common.errors import AuditBroken, Equivocation
from clustering_protocols.records import hash_chain
from clustering_protocols.wire.answers import Receipt

if TYPE_CHECKING:
    from party_sdk.party.party_session import PartySession

Place: TypeAlias = tuple[int, int]
_RECEIPT = {"digest", "size", "sequence", "entry", "received_at", "signature"}
_NOWHERE: Place = (0, 0)


class Ledger:
    """The log of one party in one session."""

    def __init__(self, party: PartySession) -> None:
        self._party, self._store = party, party.store

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the exact text of all lines, after checking them.

        Raises what :meth:`read` raises.
        """
        self.read()
        return self._lines()

    def _lines(self) -> tuple[str, ...]:
        return tuple(
            line
            for [line] in self._store.rows(
                "SELECT line FROM ledger WHERE party = ? ORDER BY number",
                self._party.id,
            )
        )

    def read(self) -> list[dict[str, Any]]:
        """Return all entries, the oldest first.

        Raises AuditBroken if a line is not the one that was written, or a receipt is
            for other bytes than those that were sent.
        """
        entries = list(hash_chain.read(self._lines()))
        sent = {_place(e): e["digest"] for e in entries if e["event"] == "sending"}
        for entry in entries:
            is_receipt = entry["event"] == "receipt"
            if is_receipt and sent.get(_place(entry)) != entry["digest"]:
                raise AuditBroken(f"Line {entry['number']}: these bytes never left.")
        return entries

    def note_joining(self, digest: str) -> None:
        """Note that the party's line of the roster is about to leave."""
        self._append("joining", {"digest": digest})

    def note_mapping(self, version: int, digest: str) -> None:
        """Note which mapping of the table counts from now on.

        digest: keyed: it shows nobody what the mapping says.
        """
        self._append("mapping", {"version": version, "digest": digest})

    @property
    def mapping_digest(self) -> str:
        """Return the digest of the mapping that counts; empty where there is none."""
        noted = self._entry("event = 'mapping'")
        return str(noted["digest"]) if noted else ""

    def note_sending(
        self,
        place: Place,
        task: str,
        digest: str,
        size: int,
        notes: Mapping[str, Any] | None = None,
    ) -> None:
        """Note that an answer is about to leave.

        place: round and attempt.
        task, digest: SHA-256 (hex) of what was asked and of the answer.
        size: bytes of the answer.
        notes: what the operator was told of the answer, for example its privacy cost.
        """
        with self._store.transaction():
            if notes:
                self._append("noting", {"notes": dict(notes)}, place)
            sent = {"task": task, "digest": digest, "size": size}
            self._append("sending", sent, place)

    def note_receipt(self, place: Place, receipt: Receipt) -> None:
        """Note the analyst's receipt for the last answer.

        Raises Equivocation if an earlier receipt for the same bytes says something
            else, or if its number is not above those before: the analyst has lost or
            changed its log.
        """
        fields = receipt.model_dump(mode="json", include=_RECEIPT)
        where = f"round {place[0]}, attempt {place[1]}"
        last = self._entry("event = 'receipt'") or {}
        if _place(last) == place:
            if any(last[name] != value for name, value in fields.items()):
                raise Equivocation(f"Two receipts for {where} differ.")
            return
        sequence = receipt.sequence
        if sequence is not None and sequence <= (last.get("sequence") or 0):
            raise Equivocation(
                f"The receipt for {where} has a number that was given before."
            )
        # one that a power cut takes is asked for again
        self._append("receipt", fields, place, durable=False)

    def has_receipt(self, place: Place) -> bool:
        """Return whether the analyst has acknowledged what left."""
        return self._at("receipt", place) is not None

    def awaits_receipt(self, place: Place) -> bool:
        """Return whether something was about to leave that nobody acknowledged."""
        is_sent = self._at("sending", place) is not None
        return is_sent and not self.has_receipt(place)

    def _at(self, event: str, place: Place) -> dict[str, Any] | None:
        return self._entry("event = ? AND round = ? AND attempt = ?", event, *place)

    def _entry(self, condition: str, *values: Any) -> dict[str, Any] | None:
        found = self._store.row(
            f"SELECT line FROM ledger WHERE party = ? AND {condition} "  # noqa: S608  our words
            "ORDER BY number DESC LIMIT 1",
            self._party.id,
            *values,
        )
        return json.loads(found[0]) if found else None

    def _append(
        self,
        event: str,
        said: Mapping[str, Any],
        place: Place = _NOWHERE,
        *,
        durable: bool = True,
    ) -> None:
        where = {} if place == _NOWHERE else {"round": place[0], "attempt": place[1]}
        entry = {"event": event, "at": datetime.now(UTC).isoformat(), **where, **said}
        with self._store.transaction(durable=durable) as database:
            party = self._party.id_in(database)
            number, last = self._store.row(
                "SELECT number, line FROM ledger WHERE party = ? "
                "ORDER BY number DESC LIMIT 1",
                party,
            ) or (0, None)
            line = hash_chain.write(last, number + 1, entry)
            database.execute(
                "INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?)",
                (party, number + 1, event, *place, line),
            )


def _place(entry: Mapping[str, Any]) -> Place:
    return entry.get("round", 0), entry.get("attempt", 0)
