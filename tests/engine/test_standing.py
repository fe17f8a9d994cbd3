"""What analyst and party keep between rounds, show each other, and refuse on arrival."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from clustering_protocols import engine, packets, simulation
from clustering_protocols.engine import Journal, signatures
from clustering_protocols.engine.course import AnalystState, Course
from clustering_protocols.engine.transcript import Entry
from clustering_protocols.errors import EnvelopeRefused, Malformed, TaskRefused
from clustering_protocols.packets import Packet
from clustering_protocols.protocols.dummy import messages
from clustering_protocols.protocols.dummy.params import Dummy
from clustering_protocols.protocols.dummy.party import Counter
from clustering_protocols.simulation import Session
from clustering_protocols.terms import Layout

PARTS = simulation.split(np.arange(36.0).reshape(12, 3), Layout.lattice(3), seed=1)
A, B, C = PARTS.layout.names


def session(**params: Any) -> Session:
    return Session(Dummy(**params), PARTS.layout, PARTS.data, seed=5)


def relabelled(packet: Packet, **changes: Any) -> bytes:
    """Return a packet whose first envelope has another label."""
    first, *others = packet.header.envelopes
    labels = [first.model_copy(update=changes), *others]
    header = packet.header.model_copy(update={"envelopes": labels})
    return packets.encode(replace(packet, header=header))


# The analyst


def test_no_result_is_kept_before_the_protocol_has_ended() -> None:
    whole = session(void_attempts=1)
    while not whole.over:
        held = AnalystState.decode(whole.open.state).held
        assert bool(held.size) == (whole.open.stage == signatures.CLOSING)
        whole.turn()


def test_the_signatures_of_the_opening_are_shown_to_who_has_not_seen_them() -> None:
    whole = session()
    opened, after = 2, 3  # lines of the transcript
    course = Course(
        session=whole.session,
        stages=(),
        lines=[],
        reached={A: opened, B: after, C: 0},
        signatures=np.ones((3, 64), np.uint8),
    )
    assert {slot: len(course.to_show(slot)) for slot in (A, B, C)} == {A: 3, B: 0, C: 0}


@pytest.mark.parametrize(
    "changes",
    [
        {"peer": A},
        {"peer": "r9c9"},
        {"round": 1},
        {"round": 3},
        {"attempt": 2},
        {"stage": "count"},
    ],
)
def test_an_envelope_to_nobody_or_of_another_round_is_refused_on_arrival(
    changes: dict[str, Any],
) -> None:
    whole = session()
    whole.until(messages.Greet)
    task, given = whole.open.tasks[A], whole.answer(A).contribution
    engine.check_contribution(whole.agreement, task, given)
    lie = relabelled(packets.read(given), **changes)
    with pytest.raises(Malformed, match="another round or no other slot"):
        engine.check_contribution(whole.agreement, task, lie)


# A party


@pytest.mark.parametrize("changes", [{"peer": "r9c9"}, {"kind": "no-such-kind"}])
def test_an_envelope_of_no_known_sender_or_kind_is_refused(
    changes: dict[str, Any],
) -> None:
    whole = session()
    whole.until(messages.Count)
    lie = relabelled(packets.read(whole.open.tasks[A]), **changes)
    with pytest.raises(EnvelopeRefused, match="no known sender or kind"):
        whole.answer(A, lie)


def test_a_result_is_read_with_the_rows_that_are_at_hand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen, conclude = [], Counter.conclude

    def watched(role: Counter, context: Any, result: Any, data: Any) -> Any:
        seen.append(data)
        return conclude(role, context, result, data)

    monkeypatch.setattr(Counter, "conclude", watched)
    whole = session()
    while not whole.over:
        whole.turn()
    known = (whole.journals[A], whole.memories[A], whole.closed.results[A])
    for rows in (whole.data[A], None):
        whole.party(A).conclude(*known, rows)
        assert seen.pop() is rows


def test_a_refusal_names_the_attempt_and_the_round_that_came() -> None:
    entry = Entry(
        stage="count",
        round=3,
        attempt=2,
        number=2,
        previous="",
        asks="count",
        left_out=(),
        told=(),
    )
    with pytest.raises(TaskRefused, match=r"Attempt 2 of round 3 is no next\."):
        Journal().following([(entry, "0" * 64)])
