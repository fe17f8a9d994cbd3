"""The person at a home, who is asked before risks are accepted and contributions leave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from clustering_protocols.common.errors import RiskNotAccepted

if TYPE_CHECKING:
    from clustering_protocols.engine.inspection import Inspection
    from coterie_pages.models import TermsSheet
    from party_sdk.party.kept_mappings import MappingChange
    from party_sdk.party.roster import Roster


class Asker:
    """Asks a person, who says no by default; each face of a home has its own.

    A call may raise instead of an answer, where nobody answers now.
    """

    @property
    def is_present(self) -> bool:
        """Return whether somebody is there to be asked."""
        return True

    def note(self, notes: Mapping[str, Any]) -> None:
        """Show what a protocol wants to be read before an answer is sent."""

    def accept(self, sheet: TermsSheet) -> None:
        """Ask once for all that a sheet lists; raise RiskNotAccepted after a no."""
        raise RiskNotAccepted(f"Nobody accepted the sheet {sheet.consent}.")

    def meet(self, roster: Roster, *, is_known: bool) -> bool:
        """Show who takes part; return whether all have read the safety number.

        is_known: whether enough of them are known; nothing is asked then.
        """
        del roster, is_known
        return False

    def change_mapping(self, change: MappingChange) -> bool:
        """Ask whether another mapping of the table counts than the one that is kept."""
        del change
        return False

    def let_go(self, found: Inspection) -> bool:
        """Ask whether a contribution may leave.

        Its protocol asks about it (``found.asks``), or consent was withdrawn: then a yes
        is to the rest of the session too.
        """
        del found
        return False
