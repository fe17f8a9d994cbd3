"""How a party leaves a session: it stops for good, and says so where it still can."""

from __future__ import annotations

from typing import Final

from clustering_protocols.errors import GuardRefused, InvitationUsed, NotReady
from clustering_protocols.wire.states import SlotState
from party_sdk._transport import Transport
from party_sdk.client import AnalystClient
from party_sdk.invitations import Invitation
from party_sdk.memory import PartyFolder

_LEFT: Final = "You left this session"


def leave(
    folder: PartyFolder, transport: Transport, reason: str, code: str | None = None
) -> bool:
    """Stop a party for good, and decline its slot if nobody has taken it yet.

    It stops before the analyst is asked: whatever comes of that, nothing more is sent.

    Parameters
    ----------
    code : str, optional
        Of the invitation that counts now; that which the party accepted, by default.

    Returns
    -------
    bool
        Whether the others are told. Once the slot is taken they wait for it until the
        coordinator cancels the session, or until the deadline.

    Raises
    ------
    NotReady
        If nothing is kept of the session here, or it is over.
    CoterieError
        If the analyst cannot be told, or refuses.
    """
    identity = folder.load_identity()
    if folder.load_result() is not None:
        raise NotReady("This session is completed: nothing more is sent.")
    if identity.ended:
        raise NotReady(f"This session is {identity.ended}: nothing more is sent.")
    with folder.locked():
        said = f"{_LEFT}{f': {reason}' if reason else ''}."
        folder.stop(said)
    if folder.has_joined:
        return False
    code = code or Invitation.parse(identity.invitation).code
    try:
        AnalystClient(transport).decline(code, SlotState.DECLINED, reason)
    except InvitationUsed:  # it joined, and the answer was lost
        return False
    return True


def come_back(folder: PartyFolder) -> None:
    """Take back that a party left, where nobody has taken its slot yet."""
    if folder.exists and has_left(folder) and not folder.has_joined:
        with folder.locked():
            folder.go_on()


def has_left(folder: PartyFolder) -> bool:
    """Return whether a party has left its session."""
    return folder.load_standing().journal.stopped.startswith(_LEFT)


def check_staying(folder: PartyFolder) -> None:
    """Refuse to go on with a session that was left; :class:`GuardRefused`."""
    if has_left(folder):
        raise GuardRefused(folder.load_standing().journal.stopped)
