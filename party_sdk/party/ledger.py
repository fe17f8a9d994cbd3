"""What left a party, under which context, and what the analyst said it got.

A chain of lines (:mod:`clustering_protocols.records.hash_chain`) in the party's folder.
What is to leave is written before its first byte leaves; the receipt follows when it
comes. Lines are synced now and then. Until they are, they stand in what is synced with
each answer (:mod:`party_sdk.party.durable_state`) as well: lines that a power cut has
taken are put back before the party continues. So the log tells everything that may have
left, even after a crash.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from clustering_protocols.common.errors import AuditBroken, Equivocation
from clustering_protocols.records import hash_chain
from clustering_protocols.wire.answers import Receipt
from party_sdk.home.files import append_private

Place = tuple[int, int]
_MOST_LOOSE: Final = 32  # lines that are not synced: each answer is written with them
_RECEIPT = {"digest", "size", "sequence", "entry", "received_at", "signature"}


class _Event(NamedTuple):
    name: str
    said: Mapping[str, Any]
    place: Place | None = None


class Ledger:
    """The log of one party in one session."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_read = False  # and checked: once
        self._n_durable = 0  # of lines, as far as this process knows
        self._reset([], 0)

    def _reset(self, text: list[str], size: int) -> None:
        self._text, self._size = text, size
        self._known: list[dict[str, Any]] = []
        self._by_place: dict[tuple[str, Place], dict[str, Any]] = {}
        self._last_sequence = 0

    def read(self) -> list[dict[str, Any]]:
        """Return all entries, the oldest first.

        Raises AuditBroken if a line is not the one that was written, or a receipt is
            for other bytes than those that were sent.
        """
        text, size = self._lines()
        entries = list(hash_chain.read(text))
        sent = {_place(e): e["digest"] for e in entries if e["event"] == "sending"}
        for entry in entries:
            is_receipt = entry["event"] == "receipt"
            if is_receipt and sent.get(_place(entry)) != entry["digest"]:
                raise AuditBroken(f"Line {entry['number']}: these bytes never left.")
        self._reset(text, size)
        self._take(entries)
        self._is_read = True
        return list(entries)

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the exact text of all lines, after checking them; see :meth:`read`."""
        self.read()
        return tuple(self._text)

    def note_joining(self, digest: str) -> None:
        """Note that the party's line of the roster is about to leave."""
        self._write(self._draw_lines(_Event("joining", {"digest": digest})))
        self.sync()

    def note_mapping(self, version: int, digest: str) -> None:
        """Note which mapping of the table counts from now on.

        digest: keyed: it shows nobody what the mapping says.
        """
        said = {"version": version, "digest": digest}
        self._write(self._draw_lines(_Event("mapping", said)))
        self.sync()

    @property
    def mapping_digest(self) -> str:
        """Return the digest of the mapping that counts; empty where there is none."""
        noted = [each for each in self._entries() if each["event"] == "mapping"]
        return noted[-1]["digest"] if noted else ""

    def about_to_leave(
        self,
        place: Place,
        task: str,
        digest: str,
        size: int,
        notes: Mapping[str, Any] | None = None,
    ) -> tuple[str, ...]:
        """Return all lines that may not be on disk once a contribution is to leave.

        The last of them says that it does. Nothing is written: the caller keeps them
        where they outlast a crash, and then calls :meth:`write_lines`.

        place: round and attempt.
        task, digest: SHA-256 (hex) of what was asked and of the answer.
        size: bytes of the answer.
        notes: what the operator was told of the answer, for example its privacy cost.
        """
        if len(self._loose()) > _MOST_LOOSE:
            self.sync()
        said = {"task": task, "digest": digest, "size": size}
        events = [_Event("noting", {"notes": dict(notes)}, place)] if notes else []
        events.append(_Event("sending", said, place))
        return (*self._loose(), *self._draw_lines(*events))

    def write_lines(self, lines: Sequence[str]) -> None:
        """Write those of these lines that are not written; they are synced later.

        Raises AuditBroken if other lines stand in their place.
        """
        known = self._entries()
        for at, line in enumerate(lines):
            number = _number(line)
            if number > len(known):
                self._write(lines[at:])
                return
            if self._text[number - 1] != line:
                raise AuditBroken(f"Line {number} is not the one that was written.")

    def sync(self) -> None:
        """Let all lines be on disk."""
        if self._path.exists():
            append_private(self._path, b"", at=self._size, durable=True)
        self._n_durable = len(self._text)

    def note_receipt(self, place: Place, receipt: Receipt) -> None:
        """Note the analyst's receipt.

        Raises Equivocation if an earlier receipt for the same bytes says something
            else, or if its number is not above those before: the analyst has lost or
            changed its log.
        """
        said = receipt.model_dump(mode="json", include=_RECEIPT)
        known = self._find("receipt", place)
        if known is not None:
            if any(known[name] != value for name, value in said.items()):
                raise Equivocation(f"Two receipts for {_describe_place(place)} differ.")
            return
        last = self._last_sequence
        if receipt.sequence is not None and receipt.sequence <= last:
            raise Equivocation(
                f"The receipt for {_describe_place(place)} has a number that was given before."
            )
        # one that a crash loses is asked for again
        self._write(self._draw_lines(_Event("receipt", said, place)))

    def has_receipt(self, place: Place) -> bool:
        """Return whether the analyst has acknowledged what left."""
        return bool(self._find("receipt", place))

    def awaits_receipt(self, place: Place) -> bool:
        """Return whether something was about to leave that nobody acknowledged."""
        return bool(self._find("sending", place)) and not self.has_receipt(place)

    @property
    def last_sent(self) -> Place:
        """Return the last round and attempt of which an answer was about to leave."""
        self._entries()
        places = (place for event, place in self._by_place if event == "sending")
        return max(places, default=(0, 0))

    def _find(self, event: str, place: Place) -> dict[str, Any] | None:
        self._entries()
        return self._by_place.get((event, place))

    def _draw_lines(self, *events: _Event) -> list[str]:
        """Return the lines of what happened, behind those that are there."""
        number, at = len(self._entries()), datetime.now(UTC).isoformat()
        last = self._text[-1] if self._text else None
        drawn: list[str] = []
        for event in events:
            where = (
                {"round": event.place[0], "attempt": event.place[1]}
                if event.place
                else {}
            )
            entry = {"event": event.name, "at": at, **where, **event.said}
            number += 1
            last = hash_chain.write(last, number, entry)
            drawn.append(last)
        return drawn

    def _write(self, lines: Sequence[str]) -> None:
        content = "".join(f"{line}\n" for line in lines).encode()
        append_private(self._path, content, at=self._size, durable=False)
        self._size += len(content)
        self._text += lines
        self._take(map(json.loads, lines))

    def _take(self, entries: Iterable[dict[str, Any]]) -> None:
        for entry in entries:
            self._known.append(entry)
            self._by_place.setdefault((entry["event"], _place(entry)), entry)
            if entry["event"] == "receipt":
                self._last_sequence = max(self._last_sequence, entry["sequence"] or 0)

    def _loose(self) -> list[str]:
        self._entries()
        return self._text[self._n_durable :]

    def _entries(self) -> list[dict[str, Any]]:
        """Return what this process has read or written: nobody else writes here."""
        if not self._is_read:
            self.read()
        return self._known

    def _lines(self) -> tuple[list[str], int]:
        """Return the lines that are whole, and the bytes they take."""
        content = self._path.read_bytes() if self._path.exists() else b""
        # of what was not synced, a power cut may leave zeros, or half a line
        content = content.rstrip(b"\0")
        whole = content[: content.rfind(b"\n") + 1]
        return whole.decode().splitlines(), len(whole)


def _number(line: str) -> int:
    number: int = json.loads(line)["number"]
    return number


def _place(entry: Mapping[str, Any]) -> Place:
    return entry.get("round", 0), entry.get("attempt", 0)


def _describe_place(place: Place) -> str:
    return f"round {place[0]}, attempt {place[1]}"
