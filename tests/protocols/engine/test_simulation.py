"""A simulated session, round by round: memory, repeated tasks and costs."""

import numpy as np
import pytest

from clustering_protocols import simulation
from clustering_protocols.common.errors import RoundClosed
from clustering_protocols.contract.party import Memory
from clustering_protocols.engine import packets
from clustering_protocols.protocols.dummy import Dummy, messages
from clustering_protocols.simulation import ANALYST, Session
from clustering_protocols.terms.terms import Layout

PARTS = simulation.split(np.arange(30.0).reshape(10, 3), Layout.lattice(2), seed=1)
A, B = PARTS.layout.names


def session(kind: type[Session] = Session, **params: int) -> Session:
    return kind(Dummy(n_clusters=3, **params), PARTS.layout, PARTS.data, seed=3)


def entries(memories: dict[str, Memory]) -> dict[str, dict[str, bytes]]:
    return {slot: memory.entries for slot, memory in memories.items()}


def labels(simulated: simulation.SimulationResult) -> dict[str, list[int]]:
    return {slot: o.labels.tolist() for slot, o in simulated.outcomes.items()}


def test_a_void_attempt_leaves_the_memories_before_the_round() -> None:
    whole = session(void_attempts=2)
    whole.play_until(messages.Count)
    before = entries(whole.memories)
    for attempt in (2, 3):
        assert whole.answer(A).memory.entries != before[A], "the round adds something"
        whole.play_round()
        assert (whole.open.round, whole.open.attempt) == (3, attempt)
        assert entries(whole.memories) == before
    whole.play_round()
    assert whole.journals[A].attempt == 3
    assert labels(whole.run_to_end()) == labels(session().run_to_end())


@pytest.mark.parametrize("killed", [False, True])
def test_a_repeated_task_is_answered_by_the_same_bytes(*, killed: bool) -> None:
    whole = session()
    whole.play_until(messages.Confirm)
    sent, before = len(whole.sent), entries(whole.memories)
    answers = {slot: whole.answer(slot).contribution for slot in (A, B)}
    assert (len(whole.sent), entries(whole.memories)) == (sent, before)
    if killed:
        whole.restart_parties()
    whole.play_round()
    received = {m.sender: m.payload for m in whole.received_messages if m.round == 4}
    assert received == answers


def test_an_answer_does_not_fit_another_attempt() -> None:
    whole = session(void_attempts=1)
    whole.play_until(messages.Count)
    old = {slot: whole.answer(slot).contribution for slot in (A, B)}
    whole.play_round()
    with pytest.raises(RoundClosed):
        whole.advance(old)


def test_all_that_the_analyst_stores_is_kept() -> None:
    whole = session(void_attempts=1)
    states = []
    while not whole.is_over:
        states.append(whole.open.state)
        whole.play_round()
    assert len(states) == 6, "five rounds, of which one was void once"
    summary = whole.final_step.summary
    assert summary is not None
    stored = [*states, *whole.final_step.results.values(), summary]
    assert sorted(whole.stored) == sorted([*stored, *(m.payload for m in whole.sent)])


def test_costs_are_bytes_sent_and_seconds_measured() -> None:
    ticks = iter(range(1000))
    whole = Session(
        Dummy(), PARTS.layout, PARTS.data, 3, timer=lambda: float(next(ticks))
    )
    run = whole.run_to_end()
    for role, cost in run.costs.items():
        sent = [len(m.payload) for m in run.sent if m.sender == role]
        assert cost.sent_bytes == sum(sent)
    assert run.costs[A].seconds == 5.0, "one tick for each answer"
    assert run.costs[ANALYST].seconds == 6.0, "and for each step, and the beginning"
    assert packets.parse(run.sent[0].payload).address.slot == A
