"""From where a session says it stands to what its page and its report show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, Literal, TypeAlias, TypeVar

from clustering_protocols.terms.terms import Layout
from clustering_protocols.wire.answers import SessionStatus
from clustering_protocols.wire.states import (
    Event,
    SessionState,
    SlotState,
    summarise_stop,
)
from coterie_pages.models import (
    AuditRow,
    SlotAnswer,
    SlotEntry,
    StageSpan,
    Timeline,
    Work,
)

May: TypeAlias = Literal["cancel", "extend", "choose"]


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
            reason=slot.reason or "",
            read_at=slot.read_at,
            stopped=summarise_stop(slot.stopped),
            joined_at=slot.joined_at,
            n_rows=slot.n_rows,
        )


def may_of(status: SessionStatus) -> Iterator[May]:
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
    said = {name: entry.get(name) for name in AuditRow.model_fields}
    return AuditRow.model_validate({n: each for n, each in said.items() if each})


_MOST_WORK: Final = 120
_MOST_ANSWERS: Final = 600
_T = TypeVar("_T")

Entry = Mapping[str, Any]


def timeline_of(
    entries: Iterable[Entry], slots: Sequence[str], now: datetime
) -> Timeline:
    """Return what a session's audit tells of times.

    Of long sessions neighbouring rounds are drawn as one, and some answers stand for all.

    entries: what the lines say, the oldest first.
    now: until when a round that is open still is drawn.
    """
    known = list(entries)
    answers = [
        _answer(entry)
        for entry in known
        if entry["event"] == "contribution" and entry.get("slot")
    ]
    joined = [_answer(e) for e in known if e["event"] == SlotState.JOINED.value]
    rounds = list(_rounds(known, now))
    return Timeline(
        stages=tuple(_stages(rounds)),
        work=tuple(_merge_rounds([work for _, work in rounds])),
        answers=tuple(_thin(answers)),
        slots=tuple(slots),
        joined=tuple(joined),
    )


def _answer(entry: Entry) -> SlotAnswer:
    at = datetime.fromisoformat(entry["at"])
    return SlotAnswer(slot=entry["slot"], at=at, round=entry.get("round") or 0)


def _rounds(entries: Iterable[Entry], now: datetime) -> Iterator[tuple[str, Work]]:
    """Yield the stage of each round, and from when until when it was open."""
    opened: tuple[Entry, datetime] | None = None
    for entry in entries:
        at = datetime.fromisoformat(entry["at"])
        if entry["event"] == Event.ROUND_OPENED:
            opened = entry, at
        elif opened is not None and entry["event"] in _ENDINGS:
            yield _round(*opened, at)
            opened = None
    if opened is not None:
        yield _round(*opened, max(now, opened[1]))


def _round(entry: Entry, begin: datetime, end: datetime) -> tuple[str, Work]:
    work = Work(begin=begin, end=end, first_round=entry["round"], rounds=1)
    return entry.get("stage") or "", work


def _stages(rounds: Iterable[tuple[str, Work]]) -> Iterator[StageSpan]:
    """Yield from when until when the rounds of each stage were open."""
    for name, some in groupby(rounds, key=itemgetter(0)):
        works = [work for _, work in some]
        if name:  # audits of earlier releases do not tell
            yield StageSpan(name=name, begin=works[0].begin, end=works[-1].end)


_ENDINGS: Final = frozenset(
    {
        Event.ROUND_COMPLETE.value,
        Event.DEADLINE.value,
        Event.CANCEL.value,
        Event.PARTY_STOPPED.value,
    }
)


def _merge_rounds(rounds: Sequence[Work]) -> Iterator[Work]:
    step = max(1, -(-len(rounds) // _MOST_WORK))
    for first in range(0, len(rounds), step):
        some = rounds[first : first + step]
        yield Work(
            begin=some[0].begin,
            end=some[-1].end,
            first_round=some[0].first_round,
            rounds=len(some),
        )


def _thin(many: Sequence[_T]) -> Sequence[_T]:
    step = max(1, -(-len(many) // _MOST_ANSWERS))
    return many[::step]
