"""Mail addresses for a session's notifications, at the analyst and in the party's home.

A party without a token cannot register addresses, so its home stores them until the
party joins. After that, the home stores the outcome for each address.
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
    """The addresses to which the analyst sends one member's notifications of a session.

    Every method raises VersionMismatch if the analyst's release does not support
    notifications.
    """

    def __init__(self, analyst: Analyst, session: str) -> None:
        self._analyst = analyst
        self._session = session

    def add(self, address: str) -> ReceiverAdded:
        """Register a mail address at the analyst.

        Raises NotOffered if the analyst does not send mail.
        """
        return self._analyst.add_receiver(self._session, address)

    def list(self) -> Receivers:
        """Fetch the registered addresses, and the deliveries to each."""
        return self._analyst.receivers(self._session)

    def remove(self, receiver_id: str) -> None:
        """Remove an address from the analyst."""
        self._analyst.remove_receiver(self._session, receiver_id)


def check_address(address: str) -> None:
    """Raise InvalidParameters if a text is not a mail address."""
    if "@" not in address or "://" in address:
        raise InvalidParameters(f"{address!r} is not a mail address.")


def missing_addresses(stored: PartySession, addresses: Iterable[str]) -> list[str]:
    """Return those of the addresses that have not been requested for this party yet."""
    requested = {request.address for request in stored.load_identity().told}
    return [address for address in addresses if address not in requested]


def request_notifications(stored: PartySession, addresses: Iterable[str]) -> None:
    """Store addresses until they are registered; earlier requests for them are replaced."""
    _save_requests(
        stored, [NotificationRequest(address=address) for address in addresses]
    )


def register_notifications(
    stored: PartySession, receivers: OwnReceivers
) -> Mapping[str, str]:
    """Register the addresses that are waiting; return the problem of each refused one.

    Raises Unavailable or Unauthenticated if the analyst cannot be reached, or if the
    token has expired. The remaining addresses then keep waiting.
    """
    problems = {}
    for request in stored.load_identity().told:
        if not request.is_waiting:
            continue
        try:
            outcome = {"id": receivers.add(request.address).id}
        except (Unavailable, Unauthenticated):
            raise
        except CoterieError as error:  # the session can run without it
            outcome = {"problem": str(error)}
            problems[request.address] = str(error)
        _save_requests(stored, [request.model_copy(update=outcome)])
    return problems


def _save_requests(
    stored: PartySession, requests: Iterable[NotificationRequest]
) -> None:
    identity = stored.load_identity()
    merged = {request.address: request for request in (*identity.told, *requests)}
    stored.save_identity(identity.model_copy(update={"told": tuple(merged.values())}))
