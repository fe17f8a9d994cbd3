"""The mappings of a party's table, as its session has used them: each is kept.

``mapping-1.toml``, ``mapping-2.toml`` … lie in the party's folder: their
levels and codes are cells. The last one counts. Logs and reports name a keyed digest
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clustering_protocols.common.errors import GuardRefused
from party_sdk.home.files import private_folder, read_private, write_private

# Libraries of tables are imported when rows are read
if TYPE_CHECKING:
    from party_sdk.tables.mapping import TableMapping

_PATTERN: Final = "mapping-*.toml"


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

    path: the party's folder.
    key: returns 32 secret bytes of the home, under which digests are made.
    """

    def __init__(self, path: Path, key: Callable[[], bytes]) -> None:
        self._path, self._key = path, key

    @property
    def version(self) -> int:
        """Return the number of the last mapping; 0 where there is none."""
        return max(self._versions(), default=0)

    def _versions(self) -> Iterator[int]:
        for path in self._path.glob(_PATTERN):
            number = path.stem.partition("-")[2]
            if number.isdecimal():
                yield int(number)

    def last(self) -> TableMapping | None:
        """Return the mapping that counts; None where there is none.

        Raises GuardRefused if its file was changed, InvalidData if it says what this
            release does not know.
        """
        if not (version := self.version):
            return None
        from party_sdk.tables.mapping import parse_mapping

        path = self._file(version)
        return parse_mapping(read_private(path), path.name)

    def for_new_rows(self) -> TableMapping | None:
        """Return the mapping that counts, as it reads another table than the session's."""
        last = self.last()
        return last and last.for_new_rows()

    def keep(self, mapping: TableMapping) -> int:
        """Keep a mapping behind those that are there, and return its number."""
        from party_sdk.tables.mapping import write_mapping

        number = self.version + 1
        private_folder(self._path)
        write_private(self._file(number), write_mapping(mapping))
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

    def _file(self, number: int) -> Path:
        return self._path / f"mapping-{number}.toml"
