"""The life of a session as data: every move that is not in the table is illegal."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class State(StrEnum):
    """Where a session stands."""

    RECRUITING = "recruiting"
    COLLECTING = "collecting"
    STEPPING = "stepping"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class Event(StrEnum):
    """What happens to a session."""

    ALL_JOINED = "all-joined"
    ROUND_COMPLETE = "round-complete"
    ROUND_OPENED = "round-opened"
    FINISHED = "finished"
    STEP_FAILED = "step-failed"
    DEADLINE = "deadline"
    CANCEL = "cancel"


LEGAL: Final[Mapping[tuple[State, Event], State]] = MappingProxyType(
    {
        (State.RECRUITING, Event.ALL_JOINED): State.STEPPING,
        (State.RECRUITING, Event.DEADLINE): State.EXPIRED,
        (State.RECRUITING, Event.CANCEL): State.CANCELLED,
        (State.COLLECTING, Event.ROUND_COMPLETE): State.STEPPING,
        (State.COLLECTING, Event.DEADLINE): State.EXPIRED,
        (State.COLLECTING, Event.CANCEL): State.CANCELLED,
        (State.STEPPING, Event.ROUND_OPENED): State.COLLECTING,
        (State.STEPPING, Event.FINISHED): State.COMPLETED,
        (State.STEPPING, Event.STEP_FAILED): State.FAILED,
        (State.STEPPING, Event.CANCEL): State.CANCELLED,
    }
)

OVER: Final = frozenset(State) - {state for state, _ in LEGAL}


def after(state: State, event: Event) -> State:
    """Return the state that follows; :class:`ValueError` for an illegal move."""
    try:
        return LEGAL[state, event]
    except KeyError:
        raise ValueError(
            f"{event} cannot happen to a session that is {state}"
        ) from None
