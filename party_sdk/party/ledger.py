"""The log of everything that a party sent, with the analyst's receipts.

The log is a hash chain of lines. A contribution is logged in the transaction that
stores it, before its first byte is sent, and its receipt is added when it arrives. Even
after a crash, the log therefore names everything that may have been sent.
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

RoundKey: TypeAlias = tuple[int, int]
_RECEIPT_FIELDS = {"digest", "size", "sequence", "entry", "received_at", "signature"}
_NO_ROUND: RoundKey = (0, 0)


class Ledger:
    """The log of one party in one session."""

    def __init__(self, party: PartySession) -> None:
        self._party, self._store = party, party.store

    @property
    def verified_lines(self) -> tuple[str, ...]:
        """Return the exact text of all lines, after verifying them.

        Raises AuditBroken as :meth:`verified_entries` does.
        """
        self.verified_entries()
        return self._load_lines()

    def _load_lines(self) -> tuple[str, ...]:
        query = "SELECT line FROM ledger WHERE party = ? ORDER BY number"
        return tuple(line for [line] in self._store.fetch_rows(query, self._party.id))

    def verified_entries(self) -> list[dict[str, Any]]:
        """Verify the log, and return all entries from oldest to newest.

        Raises AuditBroken if a line was changed, or if a receipt is for bytes that were
        not sent.
        """
        entries = list(hash_chain.read(self._load_lines()))
        digests = {
            _round_key(e): e["digest"] for e in entries if e["event"] == "sending"
        }
        for entry in entries:
            is_receipt = entry["event"] == "receipt"
            if is_receipt and digests.get(_round_key(entry)) != entry["digest"]:
                raise AuditBroken(f"Line {entry['number']} is for bytes never sent.")
        return entries

    def log_joining(self, digest: str) -> None:
        """Log that the party's roster entry is about to be sent."""
        self._append_entry("joining", {"digest": digest})

    def log_mapping(self, version: int, digest: str) -> None:
        """Log that a mapping of the party's table is used from now on.

        digest: a keyed digest, so that nobody can guess the mapping.
        """
        self._append_entry("mapping", {"version": version, "digest": digest})

    @property
    def mapping_digest(self) -> str:
        """Return the digest of the mapping that is in use; empty if there is none."""
        entry = self._last_entry("event = 'mapping'")
        return str(entry["digest"]) if entry else ""

    def log_sending(
        self,
        round_key: RoundKey,
        task: str,
        digest: str,
        size: int,
        notes: Mapping[str, Any] | None = None,
    ) -> None:
        """Log that an answer is about to be sent.

        round_key: the numbers of the round and the attempt.
        task, digest: the SHA-256 (hex) of the task and of the answer.
        size: the number of bytes of the answer.
        notes: what the operator was shown with the answer, such as its privacy cost.
        """
        with self._store.transaction():
            if notes:
                self._append_entry("noting", {"notes": dict(notes)}, round_key)
            fields = {"task": task, "digest": digest, "size": size}
            self._append_entry("sending", fields, round_key)

    def log_receipt(self, round_key: RoundKey, receipt: Receipt) -> None:
        """Log the analyst's receipt for the last answer.

        Raises Equivocation if the receipt differs from an earlier one for the same
            bytes, or if its number does not increase: the analyst has lost or changed
            its log.
        """
        fields = receipt.model_dump(mode="json", include=_RECEIPT_FIELDS)
        where = f"round {round_key[0]}, attempt {round_key[1]}"
        last = self._last_entry("event = 'receipt'") or {}
        if _round_key(last) == round_key:
            if any(last[name] != value for name, value in fields.items()):
                raise Equivocation(f"Two receipts for {where} differ.")
            return
        if receipt.sequence <= last.get("sequence", 0):
            raise Equivocation(
                f"The receipt for {where} has a number that was used before."
            )
        # Not durable, because a lost receipt is requested again.
        self._append_entry("receipt", fields, round_key, durable=False)

    def has_receipt(self, round_key: RoundKey) -> bool:
        """Return whether the analyst has acknowledged the answer of a round and attempt."""
        return self._entry_at("receipt", round_key) is not None

    def awaits_receipt(self, round_key: RoundKey) -> bool:
        """Return whether an answer may have been sent, but has no receipt."""
        is_sent = self._entry_at("sending", round_key) is not None
        return is_sent and not self.has_receipt(round_key)

    def _entry_at(self, event: str, round_key: RoundKey) -> dict[str, Any] | None:
        return self._last_entry(
            "event = ? AND round = ? AND attempt = ?", event, *round_key
        )

    def _last_entry(self, condition: str, *values: Any) -> dict[str, Any] | None:
        row = self._store.fetch_row(
            f"SELECT line FROM ledger WHERE party = ? AND {condition} "  # noqa: S608  constants
            "ORDER BY number DESC LIMIT 1",
            self._party.id,
            *values,
        )
        return json.loads(row[0]) if row else None

    def _append_entry(
        self,
        event: str,
        fields: Mapping[str, Any],
        round_key: RoundKey = _NO_ROUND,
        *,
        durable: bool = True,
    ) -> None:
        entry = {"event": event, "at": datetime.now(UTC).isoformat(), **fields}
        if round_key != _NO_ROUND:
            entry["round"], entry["attempt"] = round_key
        with self._store.transaction(durable=durable) as database:
            party = self._party.id_in(database)
            number, last = self._store.fetch_row(
                "SELECT number, line FROM ledger WHERE party = ? "
                "ORDER BY number DESC LIMIT 1",
                party,
            ) or (0, None)
            line = hash_chain.write(last, number + 1, entry)
            database.execute(
                "INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?)",
                (party, number + 1, event, *round_key, line),
            )


def _round_key(entry: Mapping[str, Any]) -> RoundKey:
    return entry.get("round", 0), entry.get("attempt", 0)
