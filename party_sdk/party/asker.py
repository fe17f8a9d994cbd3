"""The operator of a home, who accepts risks and approves contributions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from clustering_protocols.common.errors import RiskNotAccepted

if TYPE_CHECKING:
    from clustering_protocols.engine.inspection import Inspection
    from coterie_pages.models import TermsSheet
    from party_sdk.party.roster import Roster
    from party_sdk.party.stored_mappings import MappingChange


class Asker:
    """The interface to the operator; this base class refuses every question.

    Methods may raise an exception if nobody can answer at the moment.
    """

    @property
    def is_present(self) -> bool:
        """Return whether an operator can be asked."""
        return True

    def show_notes(self, notes: Mapping[str, Any]) -> None:
        """Show the protocol's notes on an answer before it is sent."""

    def accept(self, sheet: TermsSheet) -> None:
        """Ask for consent to a terms sheet; raise RiskNotAccepted if it is refused."""
        raise RiskNotAccepted(f"Nobody accepted the sheet {sheet.consent}.")

    def confirm_members(self, roster: Roster, *, is_known: bool) -> bool:
        """Show the members; return whether all of them read out the same safety number.

        is_known: whether enough members are known, so that nobody has to be asked.
        """
        del roster, is_known
        return False

    def confirm_mapping(self, change: MappingChange) -> bool:
        """Ask whether a new mapping of the table should replace the stored one."""
        del change
        return False

    def approve(self, inspection: Inspection) -> bool:
        """Ask whether a contribution may be sent.

        The question is asked if the protocol demands it (``inspection.asks``), or if
        consent was withdrawn. After a withdrawal, approval also covers the rest of the
        session.
        """
        del inspection
        return False
