"""Declining, leaving and stopping a session, and informing the other members."""

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
from party_sdk.party.party_session import PartySession

_HOLD_ERRORS: Final = (GuardRefused, InvalidData, ShapeConflict, OverlapTooSmall)
_HOLD_REMEDY: Final = (
    " The others read that this party is held (held), but not why. Run the same command "
    "again to continue, or coterie party leave to end it."
)


def decline_slot(
    analyst: Analyst, code: str, reason: str, check: str | None = None
) -> None:
    """Inform the other members that a party does not join, and why.

    reason: the operator's own words.
    check: the name of the check that refused the party; sent instead of a reason.
    """
    state = SlotState.REFUSED if check else SlotState.DECLINED
    analyst.decline(code, state, check or reason)


@contextmanager
def announce_refusals(analyst: Analyst, code: str) -> Iterator[None]:
    """Inform the other members which check refuses this party, while its slot is free.

    The other members learn only the name of the check. The party may still join with
    another table.
    """
    try:
        yield
    except (InvalidData, GuardRefused, ShapeConflict) as error:
        with suppress(CoterieError):  # the operator must see the first error
            decline_slot(analyst, code, "", error.problem.slug)
        raise


def leave_session(
    stored: PartySession,
    analyst: Analyst,
    explanation: str,
    code: str,
    reason: StopReason,
) -> bool:
    """Stop a party for good; if it has not joined yet, decline its slot.

    The stop is stored before the analyst is informed, so nothing more can be sent.

    explanation: the operator's own words; sent only while the slot is free.
    code: the code of the current invitation.
    reason: sent to the other members if the party has joined.

    Returns bool: whether the other members were informed.

    Raises NotReady if nothing is stored of the session, or if it has ended. Raises
    CoterieError if the analyst cannot be reached, or refuses.
    """
    identity = stored.load_identity()
    if stored.result is not None:
        raise NotReady("This session is completed: nothing more is sent.")
    if identity.ended:
        raise NotReady(f"This session is {identity.ended}: nothing more is sent.")
    if not stored.stop_announced:
        text = f"You left this session{f': {explanation}' if explanation else ''}."
        with stored.lock():
            stored.save_journal(stored.journal.stop(text, reason, left=True))
    if stored.has_joined:
        return announce_stop(stored, analyst)
    try:
        decline_slot(analyst, code, explanation)
    except InvitationUsed:  # it did join, but the response was lost
        return False
    return True


def announce_stop(stored: PartySession, analyst: Analyst) -> bool:
    """Inform the other members once that this party stopped for good.

    Returns bool: whether the analyst knows of the stop. The value is also True if the
    session has ended.

    Raises CoterieError if the analyst cannot be reached; the next run tries again.
    """
    journal = stored.journal
    if not journal.stopped or not stored.has_joined:
        return False
    if stored.stop_announced:
        return True
    reason = journal.stop_reason or StopReason.REFUSED
    with suppress(SessionOver, PartyStopped):  # nobody is waiting for this party
        _as_party(stored, analyst).stop(stored.session, reason)
    stored.save_stop_announced()
    return True


@contextmanager
def announce_stops(stored: PartySession, analyst: Analyst) -> Iterator[None]:
    """Inform the other members if this party stops for good, now or in an earlier run.

    If this party's guards or its table stop it, the other members see it as held.

    Raises CoterieError: the error that stopped the party, even if nobody can be
    informed.
    """
    try:
        yield
    except CoterieError as error:
        with suppress(CoterieError):  # the operator must see why it stopped
            if not announce_stop(stored, analyst) and isinstance(error, _HOLD_ERRORS):
                _as_party(stored, analyst).stop(stored.session, StopReason.HELD)
                error.remedy += _HOLD_REMEDY
        raise


def announce_resumed(
    stored: PartySession, analyst: Analyst, status: SessionStatus
) -> None:
    """Inform the other members that this party is no longer held, if it was held."""
    [slot] = (candidate for candidate in status.slots if candidate.name == stored.slot)
    if slot.stopped is StopReason.HELD:
        _as_party(stored, analyst).stop(stored.session, None)


def _as_party(stored: PartySession, analyst: Analyst) -> Analyst:
    return analyst.as_party(stored.load_identity().token or "")


def allow_rejoining(stored: PartySession) -> None:
    """Allow a party that left to continue, if its slot is still free."""
    if stored.exists and stored.journal.left and not stored.has_joined:
        with stored.lock():
            stored.save_journal(stored.journal.resume())


def check_not_stopped(stored: PartySession) -> None:
    """Raise if this party has stopped for good in the session.

    Raises GuardRefused if its operator left. Raises TaskRefused if the analyst broke
    the rules.
    """
    if stored.journal.left:
        raise GuardRefused(stored.journal.stopped)
    if stored.result is None:
        stored.journal.check_not_stopped()
