"""From where a session says it stands to what its page and its report show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Literal, TypeAlias

from clustering_protocols.terms.terms import Layout
from clustering_protocols.wire.answers import SessionStatus, SlotStatus
from clustering_protocols.wire.progress import describe_pace, updates_done
from clustering_protocols.wire.states import SessionState
from coterie_pages.models import AuditRow, SlotEntry
from coterie_pages.models.screens import Progress, SessionStatusView

May: TypeAlias = Literal["cancel", "extend", "choose"]


def standing_of(status: SessionStatus, now: datetime) -> SessionStatusView:
    """Return where a session stands, for its page."""
    return SessionStatusView(
        stage=status.stage or "",
        stage_index=status.stage_index,
        n_stages=status.n_stages,
        round=status.round,
        attempt=status.attempt,
        awaited=tuple(status.awaited_slots),
        since=status.waiting_since,
        deadline=status.deadline,
        now=now,
        over=status.is_over,
        progress=_progress(status),
        pace=describe_pace(status),
        may=tuple(_may(status)),
    )


def describe_status(status: SessionStatus) -> dict[str, Any]:
    """Return what a report says of a session as the session says it."""
    return {
        "session": status.id,
        "title": status.title or status.id,
        "protocol": status.protocol,
        "runs": tuple(status.runs),
        "state": status.state,
        "reason": status.detail or "",
        "created_at": status.created_at,
        "risks": tuple(status.risks),
    }


def seats_shown(
    status: SessionStatus, layout: Layout | None = None
) -> Iterator[SlotEntry]:
    """Yield who sits at each slot as the session says it; a layout knows the titles."""
    for slot in status.slots:
        yield SlotEntry(
            slot=slot.name,
            title="" if layout is None else layout.slot(slot.name).title,
            row=slot.row,
            column=slot.column,
            state=slot.state,
            reason=slot.reason or _describe_stop(slot),
            joined_at=slot.joined_at,
            n_rows=slot.n_rows,
        )


def _describe_stop(slot: SlotStatus) -> str:
    return "" if slot.stopped is None else f"stopped for good: {slot.stopped}"


def _progress(status: SessionStatus) -> Progress | None:
    """Return how far a protocol says it has come, in the words of all protocols."""
    told = status.progress
    if "updates" not in told:
        return None
    done, most = updates_done(status)
    return Progress(
        done=done,
        most=most,
        changes=tuple(told.get("moved") or ()),
    )


def _may(status: SessionStatus) -> Iterator[May]:
    """Yield what a coordinator may do with a session now."""
    if status.is_over:
        return
    yield "cancel"
    if status.state is not SessionState.STEPPING:
        yield "extend"
    if status.state is SessionState.CHOOSING:
        yield "choose"


def line_of(entry: Mapping[str, Any]) -> AuditRow:
    """Return a line of an audit, given what it says."""
    return AuditRow(
        number=entry["number"],
        at=entry["at"],
        event=entry["event"],
        slot=entry.get("slot") or "",
        round=entry.get("round") or 0,
        attempt=entry.get("attempt") or 0,
        reason=entry.get("reason") or "",
        digest=entry.get("digest") or "",
    )
