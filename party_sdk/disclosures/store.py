"""What a home showed, in its database: named contents of a few kinds."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from party_sdk.home.store import store_of


class Store:
    """Contents by kind and name; a new one takes the place of an earlier one."""

    def __init__(self, home: Path) -> None:
        self._database = store_of(home)

    def alone(self) -> AbstractContextManager[object]:
        """Keep other processes from what is read and written meanwhile."""
        return self._database.transaction()

    def numbers(self, kind: str) -> dict[str, int]:
        """Return the names of a kind, oldest content first; each has its number."""
        found = self._database.rows(
            "SELECT name, number FROM disclosures WHERE kind = ? ORDER BY number", kind
        )
        return dict(map(tuple, found))

    def read(self, kind: str, name: str) -> bytes:
        """Return a content."""
        query = "SELECT content FROM disclosures WHERE kind = ? AND name = ?"
        content: bytes = self._database.row(query, kind, name)[0]
        return content

    def write(self, kind: str, name: str, content: bytes) -> None:
        """Write or replace a content, durably."""
        with self._database.transaction() as database:
            database.execute(
                "INSERT INTO disclosures (kind, name, content) VALUES (?, ?, ?)",
                (kind, name, content),
            )
