"""What left a party, under which context, and what the analyst said it got.

A chain of lines (:mod:`clustering_protocols.hash_chain`) in the party's folder. What is to
leave is written and synced before its first byte leaves; the receipt follows when it
comes. So the log tells everything that may have left, even after a crash.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from clustering_protocols import hash_chain
from clustering_protocols.errors import AuditBroken, Equivocation
from clustering_protocols.wire.answers import Receipt
from party_sdk._files import append_private

Place = tuple[int, int]
_RECEIPT = {"digest", "size", "sequence", "entry", "received_at", "signature"}


class Ledger:
    """The log of one party in one session."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: list[dict[str, Any]] | None = None  # read and checked once
        self._text: list[str] = []
        self._size = 0

    def read(self) -> list[dict[str, Any]]:
        """Return all entries, the oldest first.

        Raises
        ------
        AuditBroken
            If a line is not the one that was written, or a receipt is for other bytes
            than those that were sent.
        """
        self._text, self._size = self._lines()
        entries = list(hash_chain.read(self._text))
        sent = {_place(e): e["digest"] for e in entries if e["event"] == "sending"}
        for entry in entries:
            is_receipt = entry["event"] == "receipt"
            if is_receipt and sent.get(_place(entry)) != entry["digest"]:
                raise AuditBroken(f"Line {entry['number']}: these bytes never left.")
        self._known = entries
        return list(entries)

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the exact text of all lines, after checking them; see :meth:`read`."""
        self.read()
        return tuple(self._text)

    def joining(self, digest: str) -> None:
        """Note that the party's line of the roster is about to leave."""
        self._write("joining", digest=digest)

    def noting(self, place: Place, notes: Mapping[str, Any]) -> None:
        """Note what the operator was told of an answer, for example its privacy cost."""
        if notes and not self._find("noting", place):
            self._write("noting", place, notes=dict(notes))

    def sending(self, place: Place, task: str, digest: str, size: int) -> None:
        """Note that a contribution is about to leave; once, however often it is sent.

        Parameters
        ----------
        place : tuple of int
            Round and attempt.
        task, digest : str
            SHA-256 (hex) of what was asked and of the answer.
        size : int
            Bytes of the answer.
        """
        if not self._find("sending", place):
            self._write("sending", place, task=task, digest=digest, size=size)

    def received(self, place: Place, receipt: Receipt) -> None:
        """Note the analyst's receipt.

        Raises
        ------
        Equivocation
            If an earlier receipt for the same bytes says something else, or if its
            number is not above those before: the analyst has lost or changed its log.
        """
        said = receipt.model_dump(mode="json", include=_RECEIPT)
        known = self._find("receipt", place)
        if known:
            if any(known[0][name] != value for name, value in said.items()):
                raise Equivocation(f"Two receipts for {_where(place)} differ.")
            return
        last = max((e["sequence"] or 0 for e in self._find("receipt")), default=0)
        if receipt.sequence is not None and receipt.sequence <= last:
            raise Equivocation(
                f"The receipt for {_where(place)} has a number that was given before."
            )
        self._write("receipt", place, **said)

    def has_receipt(self, place: Place) -> bool:
        """Return whether the analyst has acknowledged what left."""
        return bool(self._find("receipt", place))

    def awaits_receipt(self, place: Place) -> bool:
        """Return whether something was about to leave that nobody acknowledged."""
        return bool(self._find("sending", place)) and not self.has_receipt(place)

    def _find(self, event: str, place: Place | None = None) -> list[dict[str, Any]]:
        return [
            entry
            for entry in self._entries()
            if entry["event"] == event and place in {None, _place(entry)}
        ]

    def _write(self, event: str, place: Place | None = None, **fields: Any) -> None:
        known = self._entries()
        at = datetime.now(UTC).isoformat()
        where = {"round": place[0], "attempt": place[1]} if place else {}
        entry = {"event": event, "at": at, **where, **fields}
        last = self._text[-1] if self._text else None
        line = hash_chain.write(last, len(known) + 1, entry)
        content = f"{line}\n".encode()
        # a receipt that a crash loses is asked for again
        append_private(self._path, content, at=self._size, durable=event != "receipt")
        self._text.append(line)
        self._size += len(content)
        known.append(json.loads(line))

    def _entries(self) -> list[dict[str, Any]]:
        """Return what this process has read or written: nobody else writes here."""
        if self._known is None:
            self.read()
        return [] if self._known is None else self._known

    def _lines(self) -> tuple[list[str], int]:
        """Return the lines that are whole, and the bytes they take."""
        content = self._path.read_bytes() if self._path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        return whole.decode().splitlines(), len(whole)


def _place(entry: Mapping[str, Any]) -> Place:
    return entry.get("round", 0), entry.get("attempt", 0)


def _where(place: Place) -> str:
    return f"round {place[0]}, attempt {place[1]}"
