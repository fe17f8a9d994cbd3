"""Who takes part in a session, as an operator reads it before anything leaves."""

from __future__ import annotations

from collections.abc import Collection, Mapping
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
    """All slots, and the number that the members compare."""

    seats: tuple[Seat, ...]
    safety_number: str

    @classmethod
    def of(
        cls, agreement: bytes, known: TrustedInstitutions, own: str | None = None
    ) -> Roster:
        """Return who takes part in a checked agreement; ``own`` is the reader's slot.

        Raises GuardRefused if somebody gives the name of an institution that is known
            with another key.
        """
        agreed, _ = read_agreement(agreement)
        self_key = None if own is None else agreed.member(own).identity
        seats = []
        for member in agreed.roster:
            known.check(member.institution, member.identity)
            pinned = known.name_of(member.identity)
            seat = Seat(
                slot=member.slot,
                name=pinned or member.institution,
                known=pinned is not None or member.identity == self_key,
                fingerprint=fingerprint(member.identity),
                n_rows=member.n_rows,
                n_columns=member.n_columns,
            )
            seats.append(seat)
        return cls(seats=tuple(seats), safety_number=safety_number(agreement))

    def keys_of(self, agreement: bytes, names: Collection[str]) -> frozenset[str]:
        """Return the public keys of the members that are called so.

        Raises GuardRefused if a name is that of no member, or of several: it tells
            nobody apart.
        """
        agreed, _ = read_agreement(agreement)
        seats = zip(self.seats, agreed.roster, strict=True)
        found = [(seat.name, member.identity) for seat, member in seats]
        for name in names:
            keys = {key for called, key in found if called == name}
            if len(keys) != 1:
                raise GuardRefused(
                    f"{len(keys)} members are called {name!r} (--confirmed-with): the "
                    "members are "
                    f"{', '.join(sorted({called for called, _ in found}))}."
                )
        return frozenset(key for called, key in found if called in names)

    def check_number(self, told: str) -> None:
        """Refuse unless the others read the same safety number, however it is spaced."""
        if "".join(told.split()) != "".join(self.safety_number.split()):
            raise KeyNotAuthentic(
                f"The safety number is {self.safety_number} here, and {told} elsewhere: "
                "somebody has shown you other members than them."
            )


@dataclass(frozen=True)
class Meeting:
    """How one party knows who it is, and whom it sits with.

    home: whose identity and trusted institutions count.
    entropy: what the identity is drawn from instead, where a run is repeated.
    asker: who reads who takes part, and may have compared the safety number.
    number: the safety number that the others read.
    confirmed_with: the names of the members that read it themselves: they count as
        known. A number alone shows that all see the same members, not that these exist.
    """

    home: Path
    entropy: bytes | None = None
    asker: Asker | None = None
    number: str | None = None
    confirmed_with: Collection[str] = ()

    @cached_property
    def institution(self) -> Institution:
        """Return who this party is; on first use of a home a new identity."""
        if self.entropy is not None:
            return Institution.derive(self.entropy)
        return OwnIdentity(self.home).load_or_make()

    @property
    def trusted_keys(self) -> Mapping[str, str]:
        """Return the public key of each name whose card was trusted."""
        return TrustedInstitutions(self.home).read()

    def check_seat(self, terms: Terms, slot: str) -> None:
        """Refuse a slot at which the terms expect another institution than this one."""
        own = self.institution.key
        expected = terms.identities.slots.get(slot, own)
        if own != expected:
            raise GuardRefused(
                f"The terms expect the key {fingerprint(expected)} at slot {slot!r}; "
                f"yours is {fingerprint(own)}."
            )

    def meet(self, agreement: bytes, slot: str, policy: Policy) -> None:
        """Refuse a checked agreement whose members are not known well enough.

        Raises KeyNotAuthentic if the others read another safety number.
        Raises GuardRefused if a known name shows another key, or too few of the others
            are known: by their cards, or because they read the safety number
            themselves.
        """
        cards = TrustedInstitutions(self.home)
        roster = Roster.of(agreement, cards, slot)
        known = set(cards.read().values())
        if self.number is not None:
            roster.check_number(self.number)
            known |= roster.keys_of(agreement, self.confirmed_with)
        elif self.confirmed_with:
            raise GuardRefused(
                "--confirmed-with names who read the safety number: give the number too "
                "(--confirm-safety-number)."
            )
        refused = None
        try:
            policy.check_members(agreement, slot, known)
        except GuardRefused as error:
            refused = error
        is_compared = self.asker is not None and self.asker.meet(
            roster, is_known=refused is None
        )
        if refused is not None and not is_compared:
            raise refused

    def compare(self, agreement: bytes) -> None:
        """Hold an agreement that was accepted before against the number, if one is told."""
        if self.number is not None:
            Roster.of(agreement, TrustedInstitutions(self.home)).check_number(
                self.number
            )
