"""A simulated session, round by round: what roles store, repeated tasks and costs."""

import numpy as np
import pytest

from clustering_protocols import simulation
from clustering_protocols.common.errors import RoundClosed
from clustering_protocols.contract.party import Memory
from clustering_protocols.engine import Journal, packets, signatures, transcript
from clustering_protocols.engine.session_state import AnalystState, OngoingSession
from clustering_protocols.engine.transcript import Entry
from clustering_protocols.protocols.dummy import Dummy, messages
from clustering_protocols.records.rounds import RoundRef
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


def test_no_result_is_kept_before_the_protocol_has_ended() -> None:
    whole = session(void_attempts=1)
    while not whole.is_over:
        held = AnalystState.decode(whole.open.state).held
        assert bool(held.size) == (whole.open.stage == signatures.CLOSING)
        whole.play_round()


@pytest.mark.parametrize(
    ("behind", "kept"),
    [(0, 2), (1, 2), (2, 2), (3, 0)],
    ids=["asked nothing", "agreed", "opened", "shown"],
)
def test_signatures_are_kept_until_all_have_passed_the_opening(
    behind: int, kept: int
) -> None:
    """Anyone who has answered a later line (the opening is line 2) has seen them."""
    whole = session()
    lines = [transcript.format_first_line(whole.session)]
    for round_ in (1, 2, 3):
        here = RoundRef(stage="count", round=round_, attempt=1)
        lines = transcript.append_attempt(
            lines, here, asks="sign", left_out=(), told=()
        )
    ongoing = OngoingSession(
        session=whole.session,
        stages=(),
        lines=lines,
        reached={A: 3, B: behind},
        signatures=np.ones((2, 64), np.uint8),
    )
    after = ongoing.record_answers([A])
    assert after.reached == {A: 4, B: behind}
    assert len(after.signatures) == kept


def entry(round_: int, attempt: int, stage: str = "count") -> Entry:
    return Entry(
        number=2,
        previous="",
        stage=stage,
        round=round_,
        attempt=attempt,
        asks=f"task of {stage}",
        left_out=(),
        told=(),
    )


def test_rounds_that_were_told_are_counted_in_the_stage_in_hand() -> None:
    lines = [entry(1, 1, "a"), entry(2, 1, "a"), entry(2, 2, "a"), entry(3, 1, "b")]
    told = [
        Journal().append_entries([(line, "0" * 64) for line in lines[:count]]).told
        for count in range(5)
    ]
    two = {"task of a": 2}
    assert told == [{}, {"task of a": 1}, two, two, {"task of b": 1}]


def test_a_party_shows_neither_its_entropy_nor_the_agreement() -> None:
    whole = session()
    shown = repr(whole.party(A))
    assert repr(A) in shown
    assert repr(whole.entropies[A])[2:-1] not in shown
    assert whole.session.terms.session not in shown
