"""No party answers well-formed tasks that the analyst sends at the wrong time.

Every protocol of the catalogue gets the same deviations from an honest session: tasks
asked again, or results handed out before their time. Others are drawn in
:mod:`.test_deviations`.
"""

from itertools import pairwise
from typing import Any

import pytest
from support.lies import again, move_packet, signed

from clustering_protocols import catalogue, engine
from clustering_protocols.common.errors import CoterieError, Malformed, TaskRefused
from clustering_protocols.engine import MAX_ATTEMPTS, packets
from clustering_protocols.records import codec
from tests.protocols.engine.recorded import Recorded, honest, small
from tests.protocols.engine.sealing import Sealed, read_before_sealing

HIDDEN = frozenset({"words", "distances"})
"""Arrays under masks, which follow from the attempt."""
OF_THE_ATTEMPT = frozenset({"attempt", "signature"})
DRAWN = frozenset({"group-secret", "word"})
"""What parties draw anew in each attempt: nothing of rows."""

every_protocol = pytest.mark.parametrize("name", catalogue.catalogue())


def last_slot(session: Recorded) -> str:
    """A party that leads nothing, where there are several."""
    return list(session.standings)[-1]


@every_protocol
def test_no_result_is_taken_before_everything_was_asked(name: str) -> None:
    session = honest(name)
    for slot, result in session.final_step.results.items():
        party, memory = session.party(slot), session.memories[slot]
        data = session.data[slot]
        for at in session.standings[slot]:
            early = signed(session, move_packet(session.agreement, result, at.task))
            with pytest.raises(TaskRefused):
                party.conclude(at.journal, memory, early, data)
        party.conclude(session.journals[slot], memory, result, data)


def told_in(outcome: engine.TaskOutcome, sealed: list[Sealed]) -> tuple[Any, ...]:
    """Return what an answer says of rows: sent, sealed and remembered, without masks."""
    packet = packets.parse(outcome.contribution)
    arrays = {n: a.tobytes() for n, a in packet.arrays.items() if n not in HIDDEN}
    record = packet.header.record
    said = {k: v for k, v in record["values"].items() if k not in OF_THE_ATTEMPT}
    inside = [codec.decode(each.content) for each in sealed]
    kept = [
        (header, {name: array.tobytes() for name, array in content.items()})
        for header, content in inside
        if header["kind"] not in DRAWN
    ]
    return record["kind"], said, arrays, kept


@every_protocol
def test_an_attempt_repeats_its_round_and_there_are_few(name: str) -> None:
    for number in small(name):
        session = honest(name, number)
        for slot in (next(iter(session.standings)), last_slot(session)):
            party, data = session.party(slot), session.data[slot]
            for at, following in pairwise(session.standings[slot]):
                tasks = (packets.parse(each.task) for each in (at, following))
                if any(task.address.attempt > 1 for task in tasks):
                    continue  # the session has a second attempt of its own
                with read_before_sealing() as sealed:
                    first = party.reply(at.journal, at.memory, at.task, data)
                second = again(session.agreement, at.task, 2)
                with read_before_sealing() as sealed_again:
                    outcome = party.reply(following.journal, at.memory, second, data)
                assert told_in(outcome, sealed_again) == told_in(first, sealed)
                after = outcome.journal
                assert (after.round, after.attempt) == (following.journal.round, 2)
                with pytest.raises(TaskRefused):
                    party.reply(after, at.memory, at.task, data)
                beyond = again(session.agreement, at.task, MAX_ATTEMPTS + 1)
                with pytest.raises(TaskRefused, match="at most"):
                    party.reply(after, at.memory, beyond, data)
                third = again(session.agreement, at.task, 3)
                other = move_packet(session.agreement, following.task, third)
                with pytest.raises(TaskRefused):
                    party.reply(after, at.memory, other, data)


@pytest.mark.threat(81)
@pytest.mark.parametrize(
    ("name", "stage", "other", "error"),
    [
        ("dummy", "opening", "closing", Malformed),
        ("llf", "start-1", "start-2", TaskRefused),
    ],
)
def test_an_attempt_stays_in_the_stage_of_its_round(
    name: str, stage: str, other: str, error: type[CoterieError]
) -> None:
    examples = catalogue.protocol(name).reference().examples()
    runs = (n for n, one in enumerate(examples) if "evaluation" in one.sections)
    session = honest(name, next(runs, 0))
    slot = last_slot(session)
    for at, following in pairwise(session.standings[slot]):
        if packets.parse(at.task).address.stage == stage:
            moved = again(session.agreement, at.task, 2, stage=other)
            with pytest.raises(error):
                session.party(slot).reply(
                    following.journal, at.memory, moved, session.data[slot]
                )


def test_a_party_that_refused_once_stays_stopped() -> None:
    session = Recorded(catalogue.protocol("llf").reference().examples()[0])
    session.play_round()
    slot = last_slot(session)
    first = session.standings[slot][0].task
    lie = move_packet(session.agreement, first, session.open.tasks[slot])
    with pytest.raises(CoterieError):
        session.play_round(forged={slot: lie})
    with pytest.raises(TaskRefused, match="has stopped"):
        session.play_round()
