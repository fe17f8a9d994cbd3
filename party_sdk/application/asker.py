"""The person at a home, who is asked before risks are accepted and contributions leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from clustering_protocols.engine.inspection import Inspection
from clustering_protocols.terms.terms import read_terms
from party_sdk.party.kept_mappings import MappingChange
from party_sdk.party.party_session import PartySession
from party_sdk.party.roster import Roster

if TYPE_CHECKING:
    from coterie_pages.models import TermsSheet


class Asker(Protocol):
    """Asks a person; each face of a home has its own.

    A call may raise instead of an answer, where nobody answers now.
    """

    @property
    def is_present(self) -> bool:
        """Return whether somebody is there to be asked."""

    def note(self, notes: Mapping[str, Any]) -> None:
        """Show what a protocol wants to be read before an answer is sent."""

    def accept(self, sheet: TermsSheet) -> None:
        """Ask once for all that a sheet lists; raise RiskNotAccepted after a no."""

    def meet(self, roster: Roster, *, is_known: bool) -> bool:
        """Show who takes part; return whether all have read the safety number.

        is_known: whether enough of them are known; nothing is asked then.
        """

    def change_mapping(self, change: MappingChange) -> bool:
        """Ask whether another mapping of the table counts than the one that is kept."""

    def let_go(self, found: Inspection) -> bool:
        """Ask whether a contribution may leave.

        Its protocol asks about it (``found.asks``), or consent was withdrawn: then a yes
        is to the rest of the session too.
        """


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Asks before a contribution leaves where the accepted sheet does not say enough."""

    asker: Asker
    stored: PartySession

    def __call__(self, found: Inspection) -> bool:
        """Return whether a contribution may leave."""
        _, withdrawn_at = self.stored.objections
        consents = self.stored.consents
        is_withdrawn = withdrawn_at is not None and consents.given is None
        if not found.asks and not is_withdrawn:
            return True
        said = self.asker.let_go(found)
        if said and is_withdrawn:
            give_consent(self.stored)
        return said


def give_consent(stored: PartySession) -> None:
    """Store that a party's people said yes to the sheet of its terms."""
    from coterie_pages.views.terms_sheet import consent_digest

    text = stored.load_identity().terms.encode()
    stored.consents.give(consent_digest(text, read_terms(text)))
