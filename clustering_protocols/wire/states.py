"""The states of a session; all transitions that are not in the table are illegal."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class SessionState(StrEnum):
    """The state of a session."""

    RECRUITING = "recruiting"
    COLLECTING = "collecting"
    STEPPING = "stepping"
    CHOOSING = "choosing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class SlotState(StrEnum):
    """The state of a slot."""

    INVITED = "invited"
    REFUSED = "refused"  # by a check; the reason is its name
    DECLINED = "declined"  # by its operator; the reason is in their words
    JOINED = "joined"


class StopReason(StrEnum):
    """Why a party stopped, as the other parties read it. A party on hold may continue."""

    HELD = "held"
    LEFT = "left"
    REFUSED = "refused"
    DATA = "data"
    SOFTWARE = "software"


class Event(StrEnum):
    """An event in the life of a session."""

    ALL_JOINED = "all-joined"
    ROUND_COMPLETE = "round-complete"
    ROUND_OPENED = "round-opened"
    RUNS_DONE = "runs-done"
    CHOSEN = "chosen"
    FINISHED = "finished"
    STEP_FAILED = "step-failed"
    DEADLINE = "deadline"
    CANCEL = "cancel"
    PARTY_STOPPED = "party-stopped"
    EXTENDED = "extended"


LEGAL: Final[Mapping[tuple[SessionState, Event], SessionState]] = MappingProxyType(
    {
        (SessionState.RECRUITING, Event.ALL_JOINED): SessionState.STEPPING,
        (SessionState.RECRUITING, Event.DEADLINE): SessionState.EXPIRED,
        (SessionState.RECRUITING, Event.CANCEL): SessionState.CANCELLED,
        (SessionState.RECRUITING, Event.PARTY_STOPPED): SessionState.FAILED,
        (SessionState.COLLECTING, Event.ROUND_COMPLETE): SessionState.STEPPING,
        (SessionState.COLLECTING, Event.DEADLINE): SessionState.EXPIRED,
        (SessionState.COLLECTING, Event.CANCEL): SessionState.CANCELLED,
        (SessionState.COLLECTING, Event.PARTY_STOPPED): SessionState.FAILED,
        (SessionState.STEPPING, Event.ROUND_OPENED): SessionState.COLLECTING,
        (SessionState.STEPPING, Event.RUNS_DONE): SessionState.CHOOSING,
        (SessionState.STEPPING, Event.FINISHED): SessionState.COMPLETED,
        (SessionState.STEPPING, Event.STEP_FAILED): SessionState.FAILED,
        (SessionState.STEPPING, Event.CANCEL): SessionState.CANCELLED,
        (SessionState.CHOOSING, Event.CHOSEN): SessionState.STEPPING,
        (SessionState.CHOOSING, Event.DEADLINE): SessionState.STEPPING,
        (SessionState.CHOOSING, Event.CANCEL): SessionState.CANCELLED,
        (SessionState.CHOOSING, Event.PARTY_STOPPED): SessionState.FAILED,
        (SessionState.RECRUITING, Event.EXTENDED): SessionState.RECRUITING,
        (SessionState.COLLECTING, Event.EXTENDED): SessionState.COLLECTING,
        (SessionState.CHOOSING, Event.EXTENDED): SessionState.CHOOSING,
    }
)

CHOICE: Final = "choice"
"""The stage's name while the coordinator chooses a run."""

OVER: Final = frozenset(
    {
        SessionState.COMPLETED,
        SessionState.FAILED,
        SessionState.CANCELLED,
        SessionState.EXPIRED,
    }
)


def next_state(state: SessionState, event: Event) -> SessionState:
    """Return the state after an event; raise :class:`ValueError` if it is illegal."""
    try:
        return LEGAL[state, event]
    except KeyError:
        raise ValueError(
            f"{event} cannot happen to a session that is {state}"
        ) from None


_SENTENCES: Final[Mapping[StopReason, str]] = MappingProxyType(
    {
        StopReason.HELD: "its own limit or its people hold it back, and it may continue",
        StopReason.LEFT: "its people no longer take part",
        StopReason.REFUSED: "it refused a task, or a message that it received",
        StopReason.DATA: "its rows cannot be used",
        StopReason.SOFTWARE: "its program cannot continue",
    }
)


def describe_stop(slot: str, reason: StopReason) -> str:
    """Return a sentence about a stopped party, for the other participants."""
    return f"Slot {slot!r} stopped for good ({reason}): {_SENTENCES[reason]}."


def summarise_stop(reason: StopReason | None) -> str:
    """Return the note beside a slot whose party stopped, or "" if it has not."""
    if reason is None:
        return ""
    if reason is StopReason.HELD:
        return f"{reason}: {_SENTENCES[reason]}"
    return f"stopped for good: {reason}"
