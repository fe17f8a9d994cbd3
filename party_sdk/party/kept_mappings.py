"""The mappings of a party's table, as its session has used them: each is stored.

The last one counts. Their levels and codes are cells: logs and reports name a keyed
digest alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clustering_protocols.common.errors import GuardRefused

# Libraries of tables are imported when rows are read
if TYPE_CHECKING:
    from party_sdk.party.party_session import PartySession
    from party_sdk.tables.mapping import TableMapping


@dataclass(frozen=True, slots=True, kw_only=True)
class MappingChange:
    """What a mapping says otherwise than the one that is kept.

    digest: keyed, of the new one.
    parts: what differs, without any cell.
    """

    digest: str
    parts: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Return what an operator has to know before the new one counts."""
        shown = "; ".join(self.parts[:10])
        more = f"; {len(self.parts) - 10} more" if len(self.parts) > 10 else ""
        return (
            "This mapping of the table is another one than this session is kept with. "
            f"Different: {shown}{more}."
        )


Agree = Callable[[MappingChange], bool]


class KeptMappings:
    """The mappings of one party in one session.

    key: returns 32 secret bytes of the home, under which digests are made.
    """

    def __init__(self, party: PartySession, key: Callable[[], bytes]) -> None:
        self._party, self._store, self._key = party, party.store, key

    @property
    def version(self) -> int:
        """Return the number of the last mapping; 0 where there is none."""
        [found] = self._store.row(
            "SELECT max(version) FROM mappings WHERE party = ?", self._party.id
        )
        return found or 0

    def last(self) -> TableMapping | None:
        """Return the mapping that counts; None where there is none.

        Raises InvalidData if it says what this release does not know.
        """
        found = self._store.row(
            "SELECT content, version FROM mappings WHERE party = ? "
            "ORDER BY version DESC LIMIT 1",
            self._party.id,
        )
        if found is None:
            return None
        from party_sdk.tables.mapping import parse_mapping

        return parse_mapping(found[0], f"mapping {found[1]}")

    def for_new_rows(self) -> TableMapping | None:
        """Return the mapping that counts, as it reads another table than the session's."""
        last = self.last()
        return last and last.for_new_rows()

    def keep(self, mapping: TableMapping) -> int:
        """Keep a mapping behind those that are there, and return its number."""
        from party_sdk.tables.mapping import write_mapping

        with self._store.transaction() as database:
            number = self.version + 1
            database.execute(
                "INSERT INTO mappings VALUES (?, ?, ?)",
                (self._party.id_in(database), number, write_mapping(mapping)),
            )
        return number

    def choose(self, given: TableMapping | None, agree: Agree) -> TableMapping | None:
        """Return the mapping that counts: the kept one, unless somebody agrees to another.

        given: what the operator names; None for the kept one.
        agree: called where it is another one than is kept.

        Raises GuardRefused if nobody agrees.
        """
        kept = self.last()
        if given is None or kept is None or given == kept:
            return given or kept
        from party_sdk.tables.mapping import describe_differences

        parts = tuple(describe_differences(kept, given)) or ("the order of columns",)
        change = MappingChange(digest=self.digest(given), parts=parts)
        if not agree(change):
            raise GuardRefused(
                f"{change.sentence} Nobody has agreed to it.",
                remedy="Say nothing of a mapping to continue with the kept one, or agree to "
                "the new one: --new-mapping.",
            )
        return given

    def digest(self, mapping: TableMapping) -> str:
        """Return a keyed digest (hex): without the home's key no level can be tried."""
        from party_sdk.tables.mapping import mapping_digest

        return mapping_digest(mapping, self._key())
