"""All mappings that were used for a party's table in a session; the last one is in use.

Mappings contain cells (levels, codes), so logs and reports contain only a keyed digest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clustering_protocols.common.errors import GuardRefused
from party_sdk.tables.mapping import (
    TableMapping,
    describe_differences,
    dump_mapping,
    mapping_digest,
    parse_mapping,
)

if TYPE_CHECKING:
    from party_sdk.party.party_session import PartySession


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingChange:
    """The differences between a new mapping and the stored one.

    digest: a keyed digest of the new mapping.
    parts: descriptions of the differences, which contain no cells.
    """

    digest: str
    parts: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Return a sentence on the differences, which the operator reads first."""
        parts = "; ".join(self.parts[:10])
        more = f"; {len(self.parts) - 10} more" if len(self.parts) > 10 else ""
        return (
            "This mapping of the table differs from the one that this session uses: "
            f"{parts}{more}."
        )


Agree = Callable[[MappingChange], bool]


class StoredMappings:
    """The mappings of one party in one session."""

    def __init__(self, party: PartySession) -> None:
        self._party, self._store = party, party.store

    @property
    def version(self) -> int:
        """Return the number of the last mapping, or 0 if there is none."""
        [version] = self._store.fetch_row(
            "SELECT max(version) FROM mappings WHERE party = ?", self._party.id
        )
        return version or 0

    def current_mapping(self) -> TableMapping | None:
        """Return the mapping that is in use, or None if there is none.

        Raises InvalidData if this release cannot read it.
        """
        row = self._store.fetch_row(
            "SELECT content, version FROM mappings WHERE party = ? "
            "ORDER BY version DESC LIMIT 1",
            self._party.id,
        )
        if row is None:
            return None
        return parse_mapping(row[0], f"mapping {row[1]}")

    def for_new_rows(self) -> TableMapping | None:
        """Return the mapping in use, without the line numbers of the session's table."""
        last = self.current_mapping()
        return last and last.for_new_rows()

    def add(self, mapping: TableMapping) -> None:
        """Store a mapping, which is used from now on."""
        with self._store.transaction() as database:
            party = self._party.id_in(database)
            database.execute(
                "INSERT INTO mappings VALUES (?, ?, ?)",
                (party, self.version + 1, dump_mapping(mapping)),
            )

    def choose_mapping(
        self, new: TableMapping | None, agree: Agree
    ) -> TableMapping | None:
        """Return the stored mapping, or a new mapping if the operator agrees to it.

        new: the mapping to use; None for the stored one.
        agree: called with any differences; returns whether to use the new mapping. A
            mapping that is only written differently does not count.

        Raises GuardRefused if the operator does not agree.
        """
        stored = self.current_mapping()
        if new is None or stored is None:
            return new or stored
        parts = describe_differences(stored, new)
        if not parts:
            return stored
        change = MappingChange(digest=self.digest(new), parts=tuple(parts))
        if not agree(change):
            raise GuardRefused(
                f"{change.sentence} Nobody has agreed to it.",
                remedy="Leave out the mapping to continue with the stored one, or agree to "
                "the new one: --new-mapping.",
            )
        return new

    def digest(self, mapping: TableMapping) -> str:
        """Return a keyed digest (hex) of a mapping, so that nobody can guess its levels."""
        return mapping_digest(mapping, self._party.history.key("mapping"))
