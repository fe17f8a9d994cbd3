"""From the audit of a session to when its rounds were open, and who answered when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar

from clustering_protocols.wire.states import Event, SlotState
from coterie_pages.models.screens import Answer, Timeline, Work

_MOST_WORK: Final = 120
_MOST_ANSWERS: Final = 600
_T = TypeVar("_T")

Entry = Mapping[str, Any]


def timeline_of(
    entries: Iterable[Entry], slots: Sequence[str], now: datetime
) -> Timeline:
    """Return what a session's audit tells of times.

    Of long sessions neighbouring rounds are drawn as one, and some answers stand for all.

    Parameters
    ----------
    entries : iterable of mapping
        What the lines say, the oldest first.
    now : datetime
        Until when a round that is open still is drawn.
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
        work=tuple(_merged(rounds)),
        answers=tuple(_thinned(answers)),
        slots=tuple(slots),
        joined=tuple(joined),
    )


def _answer(entry: Entry) -> Answer:
    at = datetime.fromisoformat(entry["at"])
    return Answer(slot=entry["slot"], at=at, round=entry.get("round") or 0)


def _rounds(entries: Iterable[Entry], now: datetime) -> Iterator[Work]:
    """Yield from when until when each round was open."""
    opened: tuple[int, datetime] | None = None
    for entry in entries:
        at = datetime.fromisoformat(entry["at"])
        if entry["event"] == Event.ROUND_OPENED:
            opened = entry["round"], at
        elif opened is not None and entry["event"] in _ENDINGS:
            yield Work(begin=opened[1], end=at, first_round=opened[0], rounds=1)
            opened = None
    if opened is not None:
        end = max(now, opened[1])
        yield Work(begin=opened[1], end=end, first_round=opened[0], rounds=1)


_ENDINGS: Final = frozenset(
    {Event.ROUND_COMPLETE.value, Event.DEADLINE.value, Event.CANCEL.value}
)


def _merged(rounds: Sequence[Work]) -> Iterator[Work]:
    step = max(1, -(-len(rounds) // _MOST_WORK))
    for first in range(0, len(rounds), step):
        some = rounds[first : first + step]
        yield Work(
            begin=some[0].begin,
            end=some[-1].end,
            first_round=some[0].first_round,
            rounds=len(some),
        )


def _thinned(many: Sequence[_T]) -> Sequence[_T]:
    step = max(1, -(-len(many) // _MOST_ANSWERS))
    return many[::step]
