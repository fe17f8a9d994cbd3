"""A transport is one small class: parties of every protocol meet in memory."""

from __future__ import annotations

import inspect
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Condition
from typing import Any

import pytest
from support.examples import begun, dealt

from clustering_protocols import catalogue, engine, simulation
from clustering_protocols.common.errors import NotOffered, SessionOver
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.simulation import Session
from clustering_protocols.terms import roster_entries
from clustering_protocols.terms.agreements import Member
from clustering_protocols.terms.canonical import digest
from clustering_protocols.terms.roster_entries import session_secret, sign_terms
from clustering_protocols.terms.terms import Terms, read_terms
from clustering_protocols.wire.answers import Preview, Receipt, SessionStatus
from clustering_protocols.wire.states import SessionState
from coterie import Party, Policy
from party_sdk.analyst_client.analyst import Analyst
from party_sdk.analyst_client.invitations import Invitation

SEED = 3
MOST_LINES = 80
NOW = datetime(2026, 3, 1, tzinfo=UTC)


@dataclass
class Room:
    """One session: what its parties have said so far, and where it stands."""

    terms: bytes
    roster: dict[str, Member] = field(default_factory=dict)
    agreement: bytes = b""
    move: Any = None
    answers: dict[str, bytes] = field(default_factory=dict)
    moved: Condition = field(default_factory=Condition)

    def go_to(self, move: engine.Move) -> None:
        self.move, self.answers = move, {}
        self.moved.notify_all()


class MemoryAnalyst(Analyst):
    """One caller's view of a room. Codes and tokens are the names of slots."""

    def __init__(self, room: Room, slot: str = "") -> None:
        self.room, self.slot, self.terms = room, slot, read_terms(room.terms)

    def close(self) -> None:
        pass

    def as_party(self, token: str) -> MemoryAnalyst:
        return MemoryAnalyst(self.room, token)

    def preview(self, code: str) -> Preview:
        return Preview(
            session=self.terms.session,
            slot=code,
            state="recruiting",
            terms=self.room.terms.decode(),
            risks={},
            joins=0,
        )

    def join(self, code: str, member: Member, proof: str) -> str:
        roster_entries.check_proof(member, self.terms.session, code, 0, proof)
        with self.room.moved:
            self.room.roster[code] = member
            if self.room.roster.keys() == set(self.terms.layout.names):
                agreed = roster_entries.agree(self.room.terms, self.room.roster)
                self.room.agreement = agreed
                self.room.go_to(engine.begin(agreed))
        return code

    def session(self, session: str) -> SessionStatus:
        begun = SessionState.COLLECTING if self.room.move else SessionState.RECRUITING
        is_over = isinstance(self.room.move, engine.Closed)
        state = SessionState.COMPLETED if is_over else begun
        return SessionStatus.model_construct(id=session, state=state)

    def agreement(self, *_: str) -> bytes:
        return self.room.agreement

    def task(self, _: str, wait: float) -> bytes | None:
        with self.room.moved:
            self.room.moved.wait_for(self._find_task, wait)
            if isinstance(self.room.move, engine.Closed):
                raise SessionOver("It is over.", SessionState.COMPLETED)
            return self._find_task()

    def _find_task(self) -> Any:
        if not isinstance(self.room.move, engine.Opened):
            return self.room.move  # nothing yet, or the end
        is_answered = self.slot in self.room.answers
        return None if is_answered else self.room.move.tasks[self.slot]

    def contribute(self, *given: Any, digest: str) -> tuple[Receipt, None]:
        agreed, content = self.room.agreement, given[3]
        with self.room.moved:
            opened, answers = self.room.move, self.room.answers
            engine.check_contribution(agreed, opened.tasks[self.slot], content)
            answers[self.slot] = content
            if answers.keys() == opened.tasks.keys():
                move = engine.advance(agreed, opened.state, opened.tasks, answers)
                if isinstance(move, engine.Choosing):
                    move = engine.choose(agreed, move.state, None)
                self.room.go_to(move)
        where = dict(zip(("session", "round", "attempt"), given, strict=False))
        said = {"slot": self.slot, "digest": digest, "size": len(content)}
        unsaid = {"sequence": None, "entry": None, "received_at": NOW}
        return Receipt(**where, **said, **unsaid), None

    def result(self, *_: str) -> bytes:
        return self.room.move.results[self.slot]

    def decline(self, *_: Any) -> Any:
        raise NotOffered("Nobody declines here, and nobody is told.")

    stop = add_receiver = receivers = remove_receiver = decline


def invitation(terms: bytes, agreed: Terms, key: bytes, slot: str) -> str:
    """What a coordinator of a simulated session hands to a party."""
    own, told = Institution.derive(key), digest(terms)
    return str(
        Invitation(
            url="https://memory.example",
            session=agreed.session,
            slot=slot,
            code=slot,
            secret=session_secret(key, agreed.session),
            terms=told,
            coordinator=own.key,
            signature=sign_terms(own, told),
        )
    )


@pytest.mark.parametrize("name", catalogue.catalogue())
def test_parties_in_memory_get_the_labels_of_a_simulation(
    name: str, tmp_path: Path
) -> None:
    example = catalogue.protocol(name).reference().examples()[0]
    data, session = dealt(example, SEED).data, begun(example, SEED, Session)
    agreed, keys = session.session.terms, session.entropies
    terms = session.session.agreement.terms.encode()
    room = Room(terms)

    def take_part(slot: str) -> list[int]:
        text = invitation(terms, agreed, keys[simulation.COORDINATOR], slot)
        risks = frozenset(agreed.risks)
        with Party.join(
            text,
            policy=Policy(accepted_risks=risks, minimum_rows=1, least_known=0),
            home=tmp_path / slot,
            entropy=keys[slot],
            confirm=lambda _: True,
            analyst=MemoryAnalyst(room),
        ) as party:
            return party.run(data[slot]).labels.tolist()

    with ThreadPoolExecutor(len(agreed.layout.names)) as pool:
        found = dict(zip(data, pool.map(take_part, data), strict=True))
    outcomes = session.to_the_end().outcomes
    assert found == {slot: each.labels.tolist() for slot, each in outcomes.items()}


def test_a_transport_is_small() -> None:
    text = inspect.getsource(Room) + inspect.getsource(MemoryAnalyst)
    assert sum(bool(line.strip()) for line in text.splitlines()) <= MOST_LINES
