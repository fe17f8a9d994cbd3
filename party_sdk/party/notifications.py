"""Addresses that the analyst sends mail to, of a caller, and those that wait for it.

A party that has not joined is known to no analyst: the addresses that were named stay in
its row until it has a token, with what came of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from clustering_protocols.common.errors import (
    CoterieError,
    InvalidParameters,
    Unauthenticated,
    Unavailable,
)
from clustering_protocols.wire.answers import ReceiverAdded, Receivers
from party_sdk.analyst_client.analyst import Analyst
from party_sdk.party.party_session import NotificationRequest, PartySession


class OwnReceivers:
    """Whom the analyst tells about a session, of one caller.

    Every method raises :class:`VersionMismatch` where the analyst is of a release that
    tells nobody.
    """

    def __init__(self, analyst: Analyst, session: str) -> None:
        self._analyst = analyst
        self._session = session

    @classmethod
    def of_party(cls, stored: PartySession, analyst: Analyst) -> OwnReceivers:
        """Return those of a party that is kept on this disk.

        Raises NotReady if nothing is kept.
        """
        token = stored.load_identity().token
        return cls(analyst.as_party(token or ""), stored.session)

    def add(self, address: str) -> ReceiverAdded:
        """Let an address of mail be told.

        Raises NotOffered if the analyst sends no mail.
        """
        return self._analyst.add_receiver(self._session, address)

    def list(self) -> Receivers:
        """Return who is told, and how that went."""
        return self._analyst.receivers(self._session)

    def remove(self, receiver_id: str) -> None:
        """Have an address told no more, and forgotten."""
        self._analyst.remove_receiver(self._session, receiver_id)


def check_address(address: str) -> None:
    """Raise :class:`InvalidParameters` if nobody could be told at an address."""
    if "@" not in address or "://" in address:
        raise InvalidParameters(f"{address!r} is no address of mail.")


def read_told(stored: PartySession) -> tuple[NotificationRequest, ...]:
    """Return the addresses that a party named."""
    return stored.load_identity().told


def not_named(stored: PartySession, addresses: Iterable[str]) -> list[str]:
    """Return those of some addresses that the party has not named yet."""
    named = {each.address for each in read_told(stored)}
    return [address for address in addresses if address not in named]


def name_addresses(stored: PartySession, addresses: Iterable[str]) -> None:
    """Remember addresses; one that was named before is given to the analyst anew."""
    named = dict.fromkeys(addresses)
    before = [each for each in read_told(stored) if each.address not in named]
    _save(
        stored, [*before, *(NotificationRequest(address=address) for address in named)]
    )


def leave_addresses(stored: PartySession, receivers: OwnReceivers) -> Mapping[str, str]:
    """Give the analyst what waits; return what it did not take, and why.

    Raises Unavailable, Unauthenticated if it cannot be reached, or the token has
        expired: the rest waits on.
    """
    refused = {}
    for each in read_told(stored):
        if not each.waits:
            continue
        try:
            settled = {"id": receivers.add(each.address).id}
        except (Unavailable, Unauthenticated):  # the next time
            raise
        except CoterieError as error:  # a session does not wait for a notice
            settled = {"problem": str(error)}
            refused[each.address] = str(error)
        rest = [old for old in read_told(stored) if old.address != each.address]
        _save(stored, [*rest, each.model_copy(update=settled)])
    return refused


def _save(stored: PartySession, told: Iterable[NotificationRequest]) -> None:
    identity = stored.load_identity()
    stored.save_identity(identity.model_copy(update={"told": tuple(told)}))
