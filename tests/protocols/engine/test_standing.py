"""What analyst and parties store between rounds."""

from typing import Any

import numpy as np
import pytest

from clustering_protocols import simulation
from clustering_protocols.engine import Journal, signatures, transcript
from clustering_protocols.engine.session_state import AnalystState, OngoingSession
from clustering_protocols.engine.transcript import Entry
from clustering_protocols.protocols.dummy.params import Dummy
from clustering_protocols.records.rounds import RoundRef
from clustering_protocols.simulation import Session
from clustering_protocols.terms.terms import Layout

PARTS = simulation.split(np.arange(36.0).reshape(12, 3), Layout.lattice(3), seed=1)
A, B, C = PARTS.layout.names


def session(**params: Any) -> Session:
    return Session(Dummy(**params), PARTS.layout, PARTS.data, seed=5)


def test_no_result_is_kept_before_the_protocol_has_ended() -> None:
    whole = session(void_attempts=1)
    while not whole.is_over:
        held = AnalystState.decode(whole.open.state).held
        assert bool(held.size) == (whole.open.stage == signatures.CLOSING)
        whole.play_round()


@pytest.mark.parametrize(
    ("behind", "kept"),
    [(0, 3), (1, 3), (2, 3), (3, 0)],
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
        reached={A: 3, B: 3, C: behind},
        signatures=np.ones((3, 64), np.uint8),
    )
    after = ongoing.record_answers([A, B])
    assert after.reached == {A: 4, B: 4, C: behind}
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
