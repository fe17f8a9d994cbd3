"""The person at a home, who is asked before risks are accepted and contributions leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol

from clustering_protocols.engine.inspection import Inspection
from clustering_protocols.terms.risks import Risk
from clustering_protocols.terms.terms import Terms, read_terms
from party_sdk.party.kept_mappings import MappingChange
from party_sdk.party.party_session import PartySession
from party_sdk.party.roster import Roster

AGREEING: Final = (
    "Members sign the terms, exchange keys, and compare keyed digests of ids and of the "
    "names of columns. No value of your table is in that, and no id that can be read."
)
"""What leaves in contributions by which members only agree with each other."""
_AGREEMENT: Final = "agreement"


class Asks(StrEnum):
    """What a person is asked about, once for each kind, beside what a protocol asks."""

    NOTHING = "nothing"
    READABLE = "readable"  # what somebody else can read
    EVERYTHING = "everything"


class Answer(StrEnum):
    """What a person says of a contribution."""

    NO = "no"
    ONCE = "once"  # this one alone
    ALL = "all"  # this one, and the rest of its kind


class Asker(Protocol):
    """Asks a person; each face of a home has its own.

    A call may raise instead of an answer, where nobody answers now.
    """

    @property
    def is_present(self) -> bool:
        """Return whether somebody is there to be asked."""

    def note(self, notes: Mapping[str, Any]) -> None:
        """Show what a protocol wants to be read before an answer is sent."""

    def accept_risks(self, risks: Mapping[str, Risk], terms: str) -> None:
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

    def let_go(self, found: Inspection, terms: Terms | None) -> Answer:
        """Ask whether a contribution, and the rest of its kind, may leave.

        terms: to show all of it; None where the protocol's question says enough.
        """


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Asks before contributions leave: once for each kind, unless only one is let go.

    What a protocol asks about is asked each time.
    """

    asker: Asker
    folder: PartySession
    asks: Asks

    def __call__(self, found: Inspection) -> bool:
        """Return whether a contribution may leave."""
        if found.asks:
            return self.asker.let_go(found, None) is not Answer.NO
        consents = self.folder.consents
        kind, meaning = found.consent_kind, found.sentence
        if found.reach == "agreement":
            kind, meaning = _AGREEMENT, AGREEING
        if not self._is_asked(found) or consents.covers(kind):
            return True
        answer = self._ask(found)
        if answer is Answer.ALL:
            consents.give(kind, meaning)
        return answer is not Answer.NO

    def _is_asked(self, found: Inspection) -> bool:
        if any(self.folder.objections):
            return True
        if self.asks is Asks.READABLE:
            return found.reach == "readable"
        return self.asks is Asks.EVERYTHING

    def _ask(self, found: Inspection) -> Answer:
        if found.reach == "agreement":
            return Answer.ALL if self.asker.agree() else Answer.NO
        terms = read_terms(self.folder.load_identity().terms.encode())
        return self.asker.let_go(found, terms)
