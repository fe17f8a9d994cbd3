"""How often the ids of each table were intersected, by the coordinator who asked.

Who may have one table intersected again and again, beside tables of their own choice,
asks it about one person after the other. ``intersected.json`` in the party's home holds,
for each table and coordinator, the sessions in which blinded ids have left. A table is
known by its ids: other columns of the same people are the same table. Digests of ids are
keyed with a secret of the home, and the file is sealed as other secrets are.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from clustering_protocols.common.errors import GuardRefused, NotReady
from clustering_protocols.numerics.randomness import length_prefixed
from clustering_protocols.session_terms import check_terms
from clustering_protocols.shared_stages.row_selection import shares_rows
from clustering_protocols.terms.terms import Terms
from party_sdk.home.files import read_private, wait_for_lock, write_private

_FILE: Final = "intersected.json"

_Tables = dict[str, dict[str, list[str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Intersection:
    """One session that intersects the ids of a table; without ids nothing is counted.

    coordinator: the public key under which the terms are signed; empty where they are
        not.
    use: names session, slot and agreement: of one use an intersection is counted once.
    limit: most of one coordinator.
    """

    known: Intersections
    ids: Sequence[str] | None = field(repr=False)
    coordinator: str
    use: str
    limit: int

    def check(self) -> None:
        """Refuse one too many; :class:`GuardRefused` says how many were."""
        if self.ids is not None:
            key, tables = self.known.read()
            self._check(tables, _table(key, self.ids))

    def count(self) -> None:
        """Count it before blinded ids leave, or refuse it as :meth:`check` does."""
        if self.ids is None:
            return
        with self.known.alone():
            key, tables = self.known.read()
            table = _table(key, self.ids)
            self._check(tables, table)
            uses = tables.setdefault(table, {}).setdefault(self.coordinator, [])
            if self.use not in uses:
                uses.append(self.use)
                self.known.write(key, tables)

    def _check(self, tables: _Tables, table: str) -> None:
        uses = tables.get(table, {}).get(self.coordinator, [])
        if self.use not in uses and len(uses) >= self.limit:
            raise GuardRefused(
                f"This coordinator had the ids of this table intersected {len(uses)} "
                f"times; 'intersections_limit' is {self.limit}. Each time others learn "
                "which ids are common. To allow one more: --guard "
                f"intersections_limit={len(uses) + 1}."
            )


class Intersections:
    """What was intersected of the tables of one home."""

    def __init__(self, home: Path) -> None:
        self._path = home / _FILE

    def of(
        self, terms: Terms, slot: str, ids: Sequence[str] | None, use: str, limit: int
    ) -> Intersection:
        """Return what a session would add; nothing where it intersects no ids."""
        params = check_terms(terms)
        intersects = params.selects_rows and shares_rows(terms, slot)
        return Intersection(
            known=self,
            ids=ids if intersects else None,
            coordinator=terms.identities.coordinator or "",
            use=use,
            limit=limit,
        )

    def alone(self) -> AbstractContextManager[object]:
        """Keep other processes of this home from what is read and written meanwhile."""
        return wait_for_lock(self._path.with_name("intersected.lock"))

    def read(self) -> tuple[bytes, _Tables]:
        """Return the key of the digests, and the uses by table and coordinator."""
        if not self._path.exists():
            return secrets.token_bytes(32), {}
        try:
            kept = json.loads(read_private(self._path))
            return bytes.fromhex(kept["key"]), kept["tables"]
        except (ValueError, KeyError, TypeError):  # nobody may begin again at none
            raise NotReady(f"{self._path} cannot be read; put a copy back.") from None

    def write(self, key: bytes, tables: _Tables) -> None:
        """Keep what :meth:`read` returns."""
        kept = {"key": key.hex(), "tables": tables}
        write_private(self._path, json.dumps(kept, sort_keys=True).encode())


def _table(key: bytes, ids: Sequence[str]) -> str:
    return hmac.digest(key, length_prefixed(*sorted(ids)), "sha256").hex()
