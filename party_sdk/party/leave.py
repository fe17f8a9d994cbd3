"""How a party says no: a check refuses, its people decline, or it stops for good."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from clustering_protocols.common.errors import (
    CoterieError,
    GuardRefused,
    InvalidData,
    InvitationUsed,
    NotReady,
    OverlapTooSmall,
    PartyStopped,
    SessionOver,
    ShapeConflict,
)
from clustering_protocols.wire.answers import SessionStatus
from clustering_protocols.wire.states import SlotState, StopReason
from party_sdk.analyst_client.analyst import Analyst
from party_sdk.analyst_client.invitations import Invitation
from party_sdk.party.party_session import PartySession

_LEFT: Final = "You left this session"
_HOLDING: Final = (GuardRefused, InvalidData, ShapeConflict, OverlapTooSmall)
_TELLING_HELD: Final = (
    " The others read that this party is held (held), and not why. The same command "
    "continues; coterie party leave ends it."
)


def decline(analyst: Analyst, code: str, reason: str, check: str | None = None) -> None:
    """Tell the others why a party does not join.

    reason: in the words of its people.
    check: the name of the check that refused, in place of a reason.
    """
    state = SlotState.REFUSED if check else SlotState.DECLINED
    analyst.decline(code, state, check or reason)


@contextmanager
def telling_refusals(analyst: Analyst, code: str) -> Iterator[None]:
    """Tell the others which check refuses this party, while its slot is free.

    They read the check's name and no value; with another table it may still come.
    """
    try:
        yield
    except (InvalidData, GuardRefused, ShapeConflict) as refused:
        with suppress(CoterieError):  # what refused is what the operator has to read
            decline(analyst, code, "", refused.problem.slug)
        raise


def leave(
    stored: PartySession,
    analyst: Analyst,
    said: str,
    code: str | None = None,
    reason: StopReason = StopReason.LEFT,
) -> bool:
    """Stop a party for good, and decline its slot if nobody has taken it yet.

    It stops before the analyst is asked: whatever comes of that, nothing more is sent.

    said: why, in the words of its people. They travel only where the slot is free.
    code: of the invitation that counts now; that which the party accepted, by default.
    reason: what the others read once the slot is taken.

    Returns bool: whether the others are told.

    Raises NotReady if nothing is kept of the session here, or it is over.
    Raises CoterieError if the analyst cannot be told, or refuses.
    """
    identity = stored.load_identity()
    if stored.result is not None:
        raise NotReady("This session is completed: nothing more is sent.")
    if identity.ended:
        raise NotReady(f"This session is {identity.ended}: nothing more is sent.")
    if not stored.stop_announced:
        with stored.lock():
            stored.leave(f"{_LEFT}{f': {said}' if said else ''}.", reason)
    if stored.has_joined:
        return tell_stop(stored, analyst)
    code = code or Invitation.parse(identity.invitation).code
    try:
        decline(analyst, code, said)
    except InvitationUsed:  # it joined, and the answer was lost
        return False
    return True


def tell_stop(stored: PartySession, analyst: Analyst) -> bool:
    """Tell the others, once, in one word that this party stopped for good.

    Returns bool: whether the analyst knows it; True where the session is over anyway.

    Raises CoterieError if the analyst cannot be asked: the next start tells it.
    """
    journal, token = stored.journal, stored.load_identity().token
    if not journal.stopped or token is None:
        return False
    if stored.stop_announced:
        return True
    reason = journal.stop_reason or StopReason.REFUSED
    with suppress(SessionOver, PartyStopped):  # nobody waits for it
        analyst.as_party(token).stop(stored.session, reason)
    stored.note_stop_announced()
    return True


@contextmanager
def telling_stops(stored: PartySession, analyst: Analyst) -> Iterator[None]:
    """Tell the others where this party stops for good, or did and was killed then.

    Where a limit of its own or its operator stops it, they read that it is held.

    Raises CoterieError: what stopped it, whether the others could be told or not.
    """
    try:
        yield
    except CoterieError as error:
        with suppress(CoterieError):  # what stopped it is what the operator has to read
            if not tell_stop(stored, analyst) and isinstance(error, _HOLDING):
                _as_party(stored, analyst).stop(stored.session, StopReason.HELD)
                error.remedy += _TELLING_HELD
        raise


def go_on(stored: PartySession, analyst: Analyst, status: SessionStatus) -> None:
    """Tell the others that this party is held no more, where they read that it is."""
    [own] = (slot for slot in status.slots if slot.name == stored.slot)
    if own.stopped is StopReason.HELD:
        _as_party(stored, analyst).stop(stored.session, None)


def _as_party(stored: PartySession, analyst: Analyst) -> Analyst:
    return analyst.as_party(stored.load_identity().token or "")


def come_back(stored: PartySession) -> None:
    """Take back that a party left, where nobody has taken its slot yet."""
    if stored.exists and has_left(stored) and not stored.has_joined:
        with stored.lock():
            stored.go_on()


def has_left(stored: PartySession) -> bool:
    """Return whether a party has left its session."""
    return stored.journal.left


def check_staying(stored: PartySession) -> None:
    """Refuse to continue with a session in which this party stopped for good.

    Raises GuardRefused if its people left.
    Raises TaskRefused if the analyst broke the rules.
    """
    if has_left(stored):
        raise GuardRefused(stored.journal.stopped)
    if stored.result is None:
        stored.journal.check_going()
