"""All mappings that a session has used for a party's table; the last one is in force.

Their levels and codes are cells, so logs and reports name only a keyed digest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clustering_protocols.common.errors import GuardRefused
from party_sdk.tables.mapping import (
    TableMapping,
    describe_differences,
    mapping_digest,
    parse_mapping,
    write_mapping,
)

# Libraries of tables are imported when rows are read
if TYPE_CHECKING:
    from party_sdk.party.party_session import PartySession


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingChange:
    """The differences between a new mapping and the stored one.

    digest: keyed, of the new one.
    parts: the differences, without any cell.
    """

    digest: str
    parts: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Return the question to an operator before the new mapping is accepted."""
        parts = "; ".join(self.parts[:10])
        more = f"; {len(self.parts) - 10} more" if len(self.parts) > 10 else ""
        return (
            "This mapping of the table is another one than this session is kept with. "
            f"Different: {parts}{more}."
        )


Agree = Callable[[MappingChange], bool]


class StoredMappings:
    """The mappings of one party in one session.

    key: returns the home's 32 secret bytes for keyed digests.
    """

    def __init__(self, party: PartySession, key: Callable[[], bytes]) -> None:
        self._party, self._store, self._key = party, party.store, key

    @property
    def version(self) -> int:
        """Return the number of the last mapping, or 0."""
        [version] = self._store.row(
            "SELECT max(version) FROM mappings WHERE party = ?", self._party.id
        )
        return version or 0

    def last(self) -> TableMapping | None:
        """Return the mapping in force, or None.

        Raises InvalidData if this release cannot read it.
        """
        row = self._store.row(
            "SELECT content, version FROM mappings WHERE party = ? "
            "ORDER BY version DESC LIMIT 1",
            self._party.id,
        )
        if row is None:
            return None
        return parse_mapping(row[0], f"mapping {row[1]}")

    def for_new_rows(self) -> TableMapping | None:
        """Return the mapping in force, adapted to another table than the session's."""
        last = self.last()
        return last and last.for_new_rows()

    def keep(self, mapping: TableMapping) -> int:
        """Store a mapping as the last one, and return its number."""
        with self._store.transaction() as database:
            number = self.version + 1
            database.execute(
                "INSERT INTO mappings VALUES (?, ?, ?)",
                (self._party.id_in(database), number, write_mapping(mapping)),
            )
        return number

    def choose(self, new: TableMapping | None, agree: Agree) -> TableMapping | None:
        """Return the stored mapping, or a new one if somebody agrees to it.

        new: the operator's mapping; None for the stored one.
        agree: called if the two differ.

        Raises GuardRefused if nobody agrees.
        """
        stored = self.last()
        if new is None or stored is None or new == stored:
            return new or stored
        parts = tuple(describe_differences(stored, new)) or ("the order of columns",)
        change = MappingChange(digest=self.digest(new), parts=parts)
        if not agree(change):
            raise GuardRefused(
                f"{change.sentence} Nobody has agreed to it.",
                remedy="Leave out the mapping to continue with the stored one, or agree to "
                "the new one: --new-mapping.",
            )
        return new

    def digest(self, mapping: TableMapping) -> str:
        """Return a keyed digest (hex), so that nobody else can guess levels."""
        return mapping_digest(mapping, self._key())
