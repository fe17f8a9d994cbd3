"""Honest sessions of every protocol, with the state of each role before every round."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cache
from typing import Any, NamedTuple

from support.examples import dealt

from clustering_protocols import catalogue, engine, simulation
from clustering_protocols.contract import Example
from clustering_protocols.contract.party import Memory
from clustering_protocols.engine import Journal

SEED = 3


class Standing(NamedTuple):
    journal: Journal
    memory: Memory
    task: bytes


class _Before(NamedTuple):
    move: engine.Opened
    memories: dict[str, Memory]
    journals: dict[str, Journal]


class Recorded(simulation.Session):
    """A session that keeps where its roles stood before every round.

    standings: one for each task that a party was told.
    twin: returns another session of the same example.
    """

    twin: Callable[[], Recorded]

    def __init__(self, example: Example[Any], session: str = "simulation") -> None:
        self.standings: dict[str, list[Standing]] = {
            s: [] for s in example.layout.names
        }
        self._before: list[_Before] = []
        super().__init__(
            example.params,
            example.layout,
            dealt(example, SEED).data,
            SEED,
            session=session,
            **example.sections,
        )

    @property
    def n_rounds(self) -> int:
        return len(self._before)

    def play_round(self, *args: Any, **kwargs: Any) -> None:
        now = _Before(self.open, dict(self.memories), dict(self.journals))
        self._before.append(now)
        super().play_round(*args, **kwargs)

    def ask_party(self, slot: str, task: bytes) -> engine.TaskOutcome:
        known = Standing(self.journals[slot], self.memories[slot], task)
        self.standings[slot].append(known)
        return super().ask_party(slot, task)

    def answered(self, slot: str, opened: engine.Opened) -> bytes:
        when = (slot, opened.round, opened.attempt)
        return next(
            m.payload
            for m in self.received_messages
            if (m.sender, m.round, m.attempt) == when
        )

    def branch(self, index: int) -> Recorded:
        at, other = self._before[index], copy(self)
        other.move = other.last = at.move
        other.memories, other.journals = dict(at.memories), dict(at.journals)
        other.standings = {slot: [] for slot in self.standings}
        other.sent, other.stored, other._before = [], [], []
        return other


@cache
def honest(name: str, number: int = 0, session: str = "simulation") -> Recorded:
    recorded = Recorded(
        catalogue.protocol(name).reference().examples()[number], session
    )
    recorded.run_to_end()
    recorded.twin = lambda: honest(name, number, "another")
    return recorded


def small(name: str) -> list[int]:
    """Return the numbers of examples that show most of a protocol in little time.

    The first, and the first of each way in which rows are selected, or else the second.
    """
    known = catalogue.protocol(name).reference().examples()
    ways: dict[bool, int] = {}
    for number, example in enumerate(known):
        if example.missing:
            ways.setdefault(bool(example.params.linking_keys), number)
    return [0, *(ways.values() or range(1, len(known))[:1])]
