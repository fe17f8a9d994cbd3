"""The person at a home, who is asked before risks are accepted and contributions leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from clustering_protocols.engine.inspection import Inspection
from clustering_protocols.terms.terms import Terms, read_terms
from party_sdk.party.folder import PartyFolder
from party_sdk.party.kept_mappings import MappingChange
from party_sdk.party.roster import Roster

AGREEING: Final = (
    "Members sign the terms, exchange keys, and compare keyed digests of ids and of the "
    "names of columns. No value of your table is in that, and no id that can be read."
)
"""What leaves in contributions by which members only agree with each other."""


class Asker(Protocol):
    """Asks a person; each face of a home has its own.

    A call may raise instead of an answer, where nobody answers now.
    """

    @property
    def is_present(self) -> bool:
        """Return whether somebody is there to be asked."""

    def note(self, notes: Mapping[str, Any]) -> None:
        """Show what a protocol wants to be read before an answer is sent."""

    def accept_risks(self, risks: Mapping[str, str], terms: str) -> None:
        """Ask for risks by their codes; raise unless all are accepted.

        terms: their digest.
        """

    def meet(self, roster: Roster, *, is_known: bool) -> bool:
        """Show who takes part; return whether all have read the safety number.

        is_known: whether enough of them are known; nothing is asked then.
        """

    def change_mapping(self, change: MappingChange) -> bool:
        """Ask whether another mapping of the table counts than the one that is kept."""

    def agree(self) -> bool:
        """Ask once for all contributions by which members only agree."""

    def let_go(self, found: Inspection, terms: Terms | None) -> bool:
        """Ask whether a contribution may leave.

        terms: to show all of it; None where the protocol's question says enough.
        """


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Asks before each contribution; once for all by which members only agree.

    everything: otherwise nothing is asked but what the protocol asks about, and what
        follows a contribution that was refused.
    """

    asker: Asker
    folder: PartyFolder
    everything: bool

    def __call__(self, found: Inspection) -> bool:
        """Return whether a contribution may leave."""
        shows_all = self.everything or self.folder.is_held
        if not (found.asks or shows_all):
            return True
        if found.only_agrees and not found.asks:
            return self.asker.agree()
        if not shows_all:
            return self.asker.let_go(found, None)
        terms = read_terms(self.folder.load_identity().terms.encode())
        return self.asker.let_go(found, terms)
