"""What a receiver is told, and the two forms of it: JSON and a letter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from analyst_service.transactions.outbox import NoticeEvent
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.wire.notices import Failure, Way
from clustering_protocols.wire.states import SessionState


class Undelivered(Exception):
    """A notice did not arrive; ``is_final`` where it is of no use to try again."""

    def __init__(self, failure: Failure, *, is_final: bool = False) -> None:
        super().__init__(failure.value)
        self.failure = failure
        self.is_final = is_final


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """A notice, as far as its receiver may know: no title, no other institution.

    slot: of the party that is told; None for the coordinator.
    awaited: slots for which the session waits; of coordinators alone.
    detail: who was missing where a session has expired, or which party stopped; of
        coordinators alone.
    """

    notice_id: str
    receiver_id: str
    address: str = field(repr=False)
    way: Way
    event: NoticeEvent
    session: str
    slot: str | None
    state: str
    round: int
    happened_at: datetime
    since: datetime
    deadline: datetime | None
    reason: str | None
    awaited: tuple[str, ...] | None
    detail: str | None


def as_json(told: Notification) -> bytes:
    """Return the body of a webhook."""
    data = {
        "session": told.session,
        "slot": told.slot,
        "state": told.state,
        "round": told.round,
        "deadline": told.deadline and told.deadline.isoformat(),
        "reason": told.reason,
        "awaited": told.awaited,
        "detail": told.detail,
    }
    known = {name: value for name, value in data.items() if value is not None}
    body = {
        "type": f"session.{told.event}",
        "timestamp": told.happened_at.isoformat(),
        "data": known,
    }
    return json.dumps(body).encode()


def subject(told: Notification) -> str:
    """Return the one line of a mail that everybody on its way reads."""
    return f"Coterie: session {told.session}: {_HEADLINES[told.event]}"


def as_letter(told: Notification) -> str:
    """Return the text of a mail: what happened, and what to do."""
    return "\n".join([*_lines(told), "", _footer(told)]) + "\n"


_HEADLINES = {
    NoticeEvent.ADDED: "you will be told",
    NoticeEvent.TURN: "your turn",
    NoticeEvent.AWAITED: "awaited for long",
    NoticeEvent.ENDED: "it has ended",
}


def _lines(told: Notification) -> Iterator[str]:
    where = f"session {told.session}"
    if told.slot:
        where += f", slot {told.slot}"
    until = (
        "" if told.deadline is None else f" until {told.deadline:%Y-%m-%d %H:%M} UTC"
    )
    if told.event is NoticeEvent.ADDED:
        yield f"Notices about {where} come to this address from now on."
        yield "There is nothing to do."
    elif told.event is NoticeEvent.ENDED:
        yield f"The end of {where}: {told.state}."
        yield from _reasons(told)
    elif told.slot:
        long = " still" if told.event is NoticeEvent.AWAITED else ""
        yield f"The analyst{long} waits for this party in {where}, round {told.round}{until}."
        yield f"What to do: coterie party run {told.session} {told.slot} --data FILE"
    elif told.state == SessionState.CHOOSING:
        yield f"All runs of {where} are done; one is to be chosen{until}."
        yield f"What to do: coterie session choose {told.session} --n-clusters NUMBER"
    else:
        names = ", ".join(told.awaited or ())
        yield f"In {where} the analyst has waited since {told.since:%Y-%m-%d %H:%M} UTC{until and ' and waits'}{until} for: {names}."
        yield (
            f"What to do: ask them; coterie session extend {told.session} --days NUMBER "
            "waits longer."
        )


def _reasons(told: Notification) -> Iterator[str]:
    if told.state == SessionState.COMPLETED:
        yield "What to do: " + (
            f"coterie party run {told.session} {told.slot} --data FILE fetches the labels."
            if told.slot
            else f"coterie session show {told.session} prints the result."
        )
        return
    if told.detail:
        yield told.detail
    try:
        problem = Problem.of_slug(told.reason or "")
    except KeyError:
        return
    yield f"{problem.title}."
    yield f"What to do: {problem.remedy}"


def _footer(told: Notification) -> str:
    who = (
        f"party notify {told.session} {told.slot}"
        if told.slot
        else f"session notify {told.session}"
    )
    return (
        "-- \nSomebody who takes part in this session left this address. To hear no more "
        f"of it:\ncoterie {who} --remove {told.receiver_id}"
    )
