"""From the audit of a session to when its rounds were open, and who answered when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, TypeVar

from clustering_protocols.wire.states import Event, SlotState
from coterie_pages.models.screens import SlotAnswer, StageSpan, Timeline, Work

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
