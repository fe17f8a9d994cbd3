"""The members of a session, whom the operator verifies before anything is sent."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from clustering_protocols.common.errors import GuardRefused, KeyNotAuthentic
from clustering_protocols.secrecy.identities import Institution, fingerprint
from clustering_protocols.secrecy.keys import safety_number
from clustering_protocols.terms.agreements import Seat, read_agreement
from clustering_protocols.terms.terms import Terms
from party_sdk.home.identities import OwnIdentity, TrustedInstitutions
from party_sdk.home.policy import Policy
from party_sdk.party.asker import Asker


@dataclass(frozen=True, kw_only=True)
class Roster:
    """All members of a session, and the safety number that they compare."""

    seats: tuple[Seat, ...]
    safety_number: str

    @classmethod
    def of(
        cls, agreement: bytes, trusted: TrustedInstitutions, own: str | None = None
    ) -> Roster:
        """Return the members of a verified agreement, as the slot ``own`` knows them."""
        content, _ = read_agreement(agreement)
        own_key = None if own is None else content.member(own).identity
        seats = []
        for member in content.roster:
            pinned = trusted.name_of(member.identity)
            seat = Seat(
                slot=member.slot,
                name=pinned or member.institution,
                known=pinned is not None or member.identity == own_key,
                fingerprint=fingerprint(member.identity),
                n_rows=member.n_rows,
                n_columns=member.n_columns,
            )
            seats.append(seat)
        return cls(seats=tuple(seats), safety_number=safety_number(agreement))

    def keys_of(self, agreement: bytes, names: Collection[str]) -> frozenset[str]:
        """Return the public keys of the members with these names.

        Raises GuardRefused if a name belongs to no member, or to more than one.
        """
        content, _ = read_agreement(agreement)
        keys_by_name: dict[str, set[str]] = {}
        for seat, member in zip(self.seats, content.roster, strict=True):
            keys_by_name.setdefault(seat.name, set()).add(member.identity)
        for name in names:
            if (n_keys := len(keys_by_name.get(name, ()))) != 1:
                raise GuardRefused(
                    f"{n_keys} members are called {name!r} (--confirmed-with): the "
                    f"members are {', '.join(sorted(keys_by_name))}."
                )
        return frozenset[str]().union(*(keys_by_name[name] for name in names))

    def check_safety_number(self, number: str) -> None:
        """Raise KeyNotAuthentic if a safety number differs in more than its spaces."""
        if "".join(number.split()) != "".join(self.safety_number.split()):
            raise KeyNotAuthentic(
                f"The safety number is {self.safety_number} here, and {number} elsewhere: "
                "somebody has shown you and them different members."
            )


@dataclass(frozen=True)
class PeerVerifier:
    """Verifies the other members of a session, and provides the party's own identity.

    home: the folder of the identity and the trusted institutions.
    entropy: bytes from which the identity is derived instead, for reproducible runs.
    asker: the operator, who sees the members and may have compared the safety number.
    number: the safety number that the other members see.
    confirmed_with: the names of the members who read out the number; they count as
        known. The number alone shows that all members see the same roster, but not that
        the members are real institutions.
    """

    home: Path
    entropy: bytes | None = None
    asker: Asker | None = None
    number: str | None = None
    confirmed_with: Collection[str] = ()

    @cached_property
    def institution(self) -> Institution:
        """Return this party's institution, which is created when a home is first used."""
        if self.entropy is not None:
            return Institution.derive(self.entropy)
        return OwnIdentity(self.home).load_or_create()

    def check_seat(self, terms: Terms, slot: str) -> None:
        """Raise GuardRefused if the terms expect another institution at a slot."""
        key = self.institution.key
        expected = terms.identities.slots.get(slot, key)
        if key != expected:
            raise GuardRefused(
                f"The terms expect the key {fingerprint(expected)} at slot {slot!r}; "
                f"yours is {fingerprint(key)}."
            )

    def verify_members(self, agreement: bytes, slot: str, policy: Policy) -> None:
        """Raise if too few members of a verified agreement are known.

        A member is known if its card is trusted, or if it read out the safety number.

        Raises KeyNotAuthentic if the others see another safety number. Raises
        GuardRefused if too few members are known, or if a known name has another key.
        """
        cards = TrustedInstitutions(self.home)
        content, _ = read_agreement(agreement)
        for member in content.roster:
            cards.check_key(member.institution, member.identity)
        roster = Roster.of(agreement, cards, slot)
        known_keys = set(cards.keys_by_name().values())
        if self.number is not None:
            roster.check_safety_number(self.number)
            known_keys |= roster.keys_of(agreement, self.confirmed_with)
        elif self.confirmed_with:
            raise GuardRefused(
                "--confirmed-with names who read the safety number: give the number too "
                "(--confirm-safety-number)."
            )
        refusal = None
        try:
            policy.check_known_members(agreement, slot, known_keys)
        except GuardRefused as error:
            refusal = error
        is_compared = self.asker is not None and self.asker.confirm_members(
            roster, is_known=refusal is None
        )
        if refusal is not None and not is_compared:
            raise refusal

    def verify_safety_number(self, agreement: bytes) -> None:
        """Verify a stored agreement against the safety number that other members see."""
        if self.number is not None:
            Roster.of(agreement, TrustedInstitutions(self.home)).check_safety_number(
                self.number
            )
