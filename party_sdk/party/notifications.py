"""Mail addresses for notifications of a session, at the analyst and at the party's home.

Without a token a party cannot register addresses, so its home stores them until it joins,
and afterwards the outcome for each.
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
    """One caller's addresses for the notifications of a session.

    Every method raises :class:`VersionMismatch` if the analyst's release has no
    notifications.
    """

    def __init__(self, analyst: Analyst, session: str) -> None:
        self._analyst = analyst
        self._session = session

    def add(self, address: str) -> ReceiverAdded:
        """Register a mail address.

        Raises NotOffered if the analyst sends no mail.
        """
        return self._analyst.add_receiver(self._session, address)

    def list(self) -> Receivers:
        """Return the addresses, and the last delivery to each."""
        return self._analyst.receivers(self._session)

    def remove(self, receiver_id: str) -> None:
        """Remove an address from the analyst."""
        self._analyst.remove_receiver(self._session, receiver_id)


def check_address(address: str) -> None:
    """Raise :class:`InvalidParameters` if a text is not a mail address."""
    if "@" not in address or "://" in address:
        raise InvalidParameters(f"{address!r} is not a mail address.")


def missing_addresses(stored: PartySession, addresses: Iterable[str]) -> list[str]:
    """Return the addresses that the party has not requested yet."""
    requested = {request.address for request in stored.load_identity().told}
    return [address for address in addresses if address not in requested]


def request_notifications(stored: PartySession, addresses: Iterable[str]) -> None:
    """Store addresses; an address that was requested before is registered again."""
    _save(stored, [NotificationRequest(address=address) for address in addresses])


def register_notifications(
    stored: PartySession, receivers: OwnReceivers
) -> Mapping[str, str]:
    """Register the waiting addresses; return the problem for each refused address.

    Raises Unavailable, Unauthenticated if the analyst cannot be reached, or the token has
        expired: the other addresses keep waiting.
    """
    problems = {}
    for request in stored.load_identity().told:
        if not request.waits:
            continue
        try:
            outcome = {"id": receivers.add(request.address).id}
        except (Unavailable, Unauthenticated):
            raise
        except CoterieError as error:  # the session runs without the notification
            outcome = {"problem": str(error)}
            problems[request.address] = str(error)
        _save(stored, [request.model_copy(update=outcome)])
    return problems


def _save(stored: PartySession, requests: Iterable[NotificationRequest]) -> None:
    """Store requests in place of earlier ones of the same addresses."""
    identity = stored.load_identity()
    merged = {request.address: request for request in (*identity.told, *requests)}
    stored.save_identity(identity.model_copy(update={"told": tuple(merged.values())}))
