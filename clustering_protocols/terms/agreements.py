"""The roster and the agreement of a session.

The agreement consists of the terms and, once all parties have joined, the roster with
their public keys. Like the terms it is an exact byte string, which each side hashes as
it was received.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pydantic import Field

from clustering_protocols.common.errors import Malformed
from clustering_protocols.common.values import Value
from clustering_protocols.secrecy.identities import InstitutionName, Key, Signature
from clustering_protocols.secrecy.keys import PublicKeys
from clustering_protocols.terms.canonical import parse_as
from clustering_protocols.terms.terms import Name, Terms, read_terms


class RosterEntry(Value):
    """The part of a roster line that the party itself declares."""

    slot: Name
    n_rows: int = Field(ge=1, lt=2**40)
    n_columns: int = Field(ge=1, lt=2**20)
    keys: PublicKeys
    institution: InstitutionName = Field(
        description="The name that the institution gives itself; may be empty."
    )
    identity: Key = Field(description="Its institution's public key.")


class Member(RosterEntry):
    """One line of the roster: a party's entry, with its mark and its signature.

    See :func:`clustering_protocols.terms.roster_entries.create_roster_line`.
    """

    mark: str = Field(
        pattern=r"^[0-9a-f]{64}$", description="HMAC under the session secret."
    )
    signature: Signature = Field(description="Signature of the entry, by the identity.")

    @property
    def line(self) -> RosterEntry:
        """Return the entry that the mark and the signature cover."""
        return RosterEntry.model_validate(
            self.model_dump(exclude={"mark", "signature"})
        )


class Agreement(Value):
    """The exact text of the terms, and the roster in the order of the slots."""

    terms: str
    roster: tuple[Member, ...]

    def member(self, slot: str) -> Member:
        """Return the roster line of a slot."""
        return self._by_slot[slot]

    @cached_property
    def _by_slot(self) -> dict[str, Member]:
        return {member.slot: member for member in self.roster}


@dataclass(frozen=True, kw_only=True)
class Seat:
    """A slot and the institution that occupies it.

    name: the name on the institution's card if the card is trusted, otherwise the name
        that the institution gives itself.
    known: whether this party trusts that card, or belongs to the institution.
    """

    slot: str
    name: str
    known: bool
    fingerprint: str
    n_rows: int
    n_columns: int


def read_agreement(text: bytes) -> tuple[Agreement, Terms]:
    """Parse an agreement and its terms.

    Raises Malformed if the roster does not list each slot of the layout exactly once.
    """
    agreement = parse_as(Agreement, text, "an agreement")
    terms = read_terms(agreement.terms.encode())
    if tuple(member.slot for member in agreement.roster) != terms.layout.names:
        raise Malformed("The roster does not list each slot of the layout once.")
    return agreement, terms
