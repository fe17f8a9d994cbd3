"""From where a session stands to what its page shows: how far it is, what may be done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

from clustering_protocols.wire.answers import SessionStatus
from clustering_protocols.wire.states import SessionState
from coterie_pages.models import Line
from coterie_pages.models.screens import Progress

May: TypeAlias = Literal["cancel", "extend", "choose"]


def progress_of(told: Mapping[str, Any]) -> Progress | None:
    """Return how far a protocol says it has come, in the words of all protocols."""
    if "updates" not in told:
        return None
    return Progress(
        done=told["updates"],
        most=told.get("of_at_most") or told["updates"],
        changes=tuple(told.get("moved") or ()),
    )


def may(status: SessionStatus) -> Iterator[May]:
    """Yield what a coordinator may do with a session now."""
    if status.over:
        return
    yield "cancel"
    if status.state is not SessionState.STEPPING:
        yield "extend"
    if status.state is SessionState.CHOOSING:
        yield "choose"


def line_of(entry: Mapping[str, Any]) -> Line:
    """Return a line of an audit, given what it says."""
    return Line(
        number=entry["number"],
        at=entry["at"],
        event=entry["event"],
        slot=entry.get("slot") or "",
        round=entry.get("round") or 0,
        attempt=entry.get("attempt") or 0,
        reason=entry.get("reason") or "",
        digest=entry.get("digest") or "",
    )
