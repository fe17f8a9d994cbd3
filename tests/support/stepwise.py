"""A session that goes round by round under a test's hand: absences, lies, second tries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

import numpy as np

from clustering_protocols import engine, enrolment, packets, registry, simulation
from clustering_protocols.arrays import FloatArray
from clustering_protocols.contract import Memory, Outcome, Params, PartyContext
from clustering_protocols.data import DataSource, MatrixSource
from clustering_protocols.records import Record
from clustering_protocols.registry import Proposal
from clustering_protocols.terms import Layout

R = TypeVar("R", bound=Record)


def cut(X: FloatArray, layout: Layout, sizes: list[int]) -> dict[str, MatrixSource]:
    """Return the rows of X, in order, as parties of these sizes."""
    pieces = np.split(X, np.cumsum(sizes)[:-1])
    return {
        slot: MatrixSource(piece)
        for slot, piece in zip(layout.names, pieces, strict=True)
    }


def agree(
    params: Params, data: Mapping[str, DataSource], layout: Layout, seed: int, name: str
) -> tuple[bytes, dict[str, bytes]]:
    """Return the agreement of a session and every party's entropy."""
    keys = simulation.entropies(seed, name, layout.names)
    secret = enrolment.session_secret(keys[simulation.COORDINATOR], name)
    proposal = Proposal(
        protocol=registry.name_of(params),
        params=params.model_dump(mode="json"),
        layout=layout,
        seed=seed,
    )
    roster = {
        slot: enrolment.enrol(
            secret, name, slot, keys[slot], source.n_rows, len(source.columns)
        )
        for slot, source in data.items()
    }
    return enrolment.agree(registry.draw_up(name, proposal), roster), keys


class Stepwise:
    """Analyst and parties of one session.

    Attributes
    ----------
    move
        The open round, or the end.
    stored : list of bytes
        All that the analyst ever holds: states, tasks, contributions, results.
    shares : list of (str, bytes)
        Every contribution, in order, with its sender.
    """

    def __init__(
        self,
        params: Params,
        data: Mapping[str, DataSource],
        layout: Layout,
        *,
        seed: int = 5,
        session: str = "s",
    ) -> None:
        self.data = data
        self.agreement, self.keys = agree(params, data, layout, seed, session)
        self.memories = dict.fromkeys(layout.names, Memory())
        self.stored: list[bytes] = []
        self.shares: list[tuple[str, bytes]] = []
        self.move = self._keep(engine.begin(self.agreement))

    @property
    def open(self) -> engine.Opened:
        assert isinstance(self.move, engine.Opened), "the session is over"
        return self.move

    @property
    def closed(self) -> engine.Closed:
        assert isinstance(self.move, engine.Closed), "the session goes on"
        return self.move

    def party(self, slot: str) -> engine.PartyEngine:
        return engine.PartyEngine(
            agreement=self.agreement, slot=slot, entropy=self.keys[slot]
        )

    def view(self, slot: str) -> PartyContext:
        """Return where a party stands, to read what it could."""
        plan, stages = engine.load(self.agreement)
        return PartyContext(
            session=plan,
            slot=plan.layout.slot(slot),
            stage=stages[-1].name,
            round=1,
            attempt=1,
            memory=self.memories[slot],
            entropy=self.keys[slot],
        )

    def answer(self, slot: str, task: bytes | None = None) -> engine.Answer:
        return self.party(slot).reply(
            self.memories[slot], task or self.open.tasks[slot], self.data[slot]
        )

    def turn(
        self,
        absent: Collection[str] = (),
        told: Mapping[str, bytes] | None = None,
    ) -> None:
        """Answer the open round, but for those who are absent; tell some another task."""
        tasks = {**self.open.tasks, **(told or {})}
        answers = {
            slot: self.answer(slot, tasks[slot])
            for slot in self.open.tasks
            if slot not in absent
        }
        given = {slot: answer.contribution for slot, answer in answers.items()}
        self.shares += given.items()
        self.stored += given.values()
        before = self.open
        self.move = self._keep(
            engine.advance(self.agreement, before.state, before.tasks, given)
        )
        void = isinstance(self.move, engine.Opened) and self.move.round == before.round
        if not void:
            self.memories |= {slot: answer.memory for slot, answer in answers.items()}

    def until(self, kind: type[Record], number: int | None = None) -> None:
        """Go on, with everybody, to the first round whose task is of this kind."""
        while True:
            header = packets.read(next(iter(self.open.tasks.values()))).header.record
            if header["kind"] == kind.kind and number in {
                None,
                header["values"].get("number"),
            }:
                return
            self.turn()

    def to_the_end(self, told: Mapping[str, bytes] | None = None) -> dict[str, Outcome]:
        """Go on with everybody; tell some another task in the round that is open."""
        self.turn(told=told)
        while isinstance(self.move, engine.Opened):
            self.turn()
        return self.outcomes()

    def outcomes(self) -> dict[str, Outcome]:
        return {
            slot: self.party(slot).conclude(
                self.memories[slot], result, self.data[slot]
            )
            for slot, result in self.closed.results.items()
        }

    def recall(self, slot: str, kind: type[R]) -> R:
        found = self.memories[slot].recall(kind)
        assert found is not None
        return found

    def altered(self, slot: str, change: Callable[[Any], Mapping[str, Any]]) -> bytes:
        """Return a slot's task with fields of its record replaced by a lying analyst."""
        return alter(self.agreement, self.open.tasks[slot], change)

    def _keep(
        self, move: engine.Opened | engine.Closed
    ) -> engine.Opened | engine.Closed:
        if isinstance(move, engine.Opened):
            self.stored += [move.state, *move.tasks.values()]
        else:
            self.stored += [*move.results.values(), move.summary or b""]
        return move


def alter(
    agreement: bytes, message: bytes, change: Callable[[Any], Mapping[str, Any]]
) -> bytes:
    """Return a message with fields of its record replaced."""
    _, stages = engine.load(agreement)
    packet = packets.read(message)
    stage = next(s for s in stages if s.name == packet.address.stage)
    record = packet.read(stage)
    lie = type(record).model_validate(dict(record) | dict(change(record)))
    return packets.write(
        packet.address,
        lie,
        expects=packet.header.expects,
        envelopes=packet.envelopes,
    )
