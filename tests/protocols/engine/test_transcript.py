"""All parties must have the same transcript to answer tasks and get labels."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.examples import begun
from support.lies import alter, signed

from clustering_protocols import catalogue, engine, simulation
from clustering_protocols.common.errors import (
    AuditBroken,
    CoterieError,
    ProtocolFailed,
    SignatureRefused,
    TaskRefused,
)
from clustering_protocols.engine import packets, signatures, transcript
from clustering_protocols.engine.packets import Packet
from clustering_protocols.protocols.dummy import messages
from clustering_protocols.protocols.dummy.params import Dummy
from clustering_protocols.records import hash_chain
from clustering_protocols.secrecy.keys import party_keys
from clustering_protocols.terms.terms import Layout

SEED = 5
A, B, C = "r1c1", "r2c1", "r3c1"
PARTS = simulation.split(np.arange(36.0).reshape(12, 3), Layout.lattice(3), SEED)


def dummies(**params: Any) -> simulation.Session:
    return simulation.Session(Dummy(**params), PARTS.layout, PARTS.data, SEED)


def test_a_field_that_all_share_is_nobodys_own() -> None:
    session = dummies(n_clusters=3)
    session.play_until(messages.Confirm)
    task = packets.parse(session.open.tasks[A])
    with pytest.raises(TaskRefused, match="own fields of a message differ"):
        session.answer(A, packets.encode_packet(replace(task, own=("total",))))
    while not session.is_over:
        session.play_round()
    result = packets.parse(session.final_step.results[A])
    lie = packets.encode_packet(replace(result, own=("labels",)))
    known = (session.journals[A], session.memories[A])
    with pytest.raises(TaskRefused, match="own fields of a message differ"):
        session.party(A).conclude(*known, lie, session.data[A])


def test_a_chain_tells_lines_changed_moved_or_left_out() -> None:
    first = hash_chain.write(None, 1, {"event": "a"})
    second = hash_chain.write(first, 2, {"event": "b"})
    third = hash_chain.write(first, 3, {"event": "b"})
    alone = hash_chain.write(None, 2, {"event": "b"})
    read = [entry["event"] for entry in hash_chain.read([first, second])]
    assert read == ["a", "b"]
    changed = first.replace('"a"', '"c"')
    for lines in (
        [second],
        [changed, second],
        [first, third],
        [first, alone],
        ["{"],
        ["[]"],
    ):
        with pytest.raises(AuditBroken):
            list(hash_chain.read(lines))


# Absences


def left_out(session: simulation.Session, slot: str) -> Packet:
    """The next task of a slot, after an attempt of the last round that left it out."""
    packet = packets.parse(session.open.tasks[slot])
    last = transcript.parse_last_entry(packet.history)
    before = hash_chain.digest(packet.history[0]) if len(packet.history) > 1 else None
    there = {**json.loads(packet.history[-1])}
    there |= {
        "round": last.round - 1,
        "attempt": 2,
        "left_out": [slot],
        "previous": before or last.previous,
        "number": last.number,
    }
    absent = json.dumps(there, sort_keys=True, separators=(",", ":"))
    here = {**json.loads(packet.history[-1]), "number": last.number + 1}
    here["previous"] = hash_chain.digest(absent)
    final = json.dumps(here, sort_keys=True, separators=(",", ":"))
    return replace(packet, history=[*packet.history[:-1], absent, final])


def test_who_has_a_receipt_was_not_absent() -> None:
    session = dummies()
    session.play_round()
    lie = packets.encode_packet(left_out(session, A))
    known = (session.journals[A], session.memories[A])
    party, data = session.party(A), session.data[A]
    with pytest.raises(TaskRefused, match="left this party out of a round"):
        party.reply(*known, lie, data)
    answer = party.reply(*known, lie, data, acknowledged=False)
    assert answer.contribution, "an answer that came too late is no lie"
    assert party.follow_transcript(known[0], lie).line > known[0].line


# Signatures


def test_a_party_with_a_wrong_signature_is_named() -> None:
    session = dummies()
    answers = {slot: session.answer(slot).contribution for slot in PARTS.layout.names}
    answers[B] = alter(
        session.agreement, answers[B], lambda _: {"signature": "0" * 128}
    )
    with pytest.raises(ProtocolFailed, match="2 parties have signed, not 3"):
        session.advance(answers)
    answers[B] = alter(
        session.agreement, answers[B], lambda _: {"signature": "1" * 128}
    )
    with pytest.raises(ProtocolFailed, match=f"'{B}' has not signed"):
        session.advance(answers)


@pytest.mark.parametrize("stage", [signatures.OPENING, signatures.CLOSING])
@pytest.mark.parametrize("lie", ["zeros", "one bit", "another slot", "another stage"])
def test_a_wrong_signature_is_refused_at_arrival(stage: str, lie: str) -> None:
    session = dummies()
    while session.open.stage != stage:
        session.play_round()
    task = session.open.tasks[B]
    honest = session.answer(B).contribution
    engine.check_contribution(session.agreement, task, honest)
    right = bytes.fromhex(packets.parse(honest).header.record["values"]["signature"])
    told = hash_chain.digest(packets.parse(task).history[-1])
    signature = {
        "zeros": bytes(64),
        "one bit": bytes([right[0] ^ 1, *right[1:]]),
        "another slot": signed_by(session, A, stage, told),
        "another stage": signed_by(session, B, "count", told),
    }[lie]
    wrong = alter(session.agreement, honest, lambda _: {"signature": signature.hex()})
    with pytest.raises(SignatureRefused, match=f"'{B}' .* transcript in the {stage}"):
        engine.check_contribution(session.agreement, task, wrong)


def signed_by(session: simulation.Session, slot: str, stage: str, told: str) -> bytes:
    name = session.session.terms.session
    keys = party_keys(session.entropies[slot], name, slot)
    return keys.signing.sign(signatures.bytes_to_sign(stage, told))


@pytest.mark.threat(81)
def test_other_labels_than_were_signed_are_refused() -> None:
    session = dummies(n_clusters=3)
    while not session.is_over:
        session.play_round()
    result = session.final_step.results[A]
    swapped = alter(
        session.agreement, result, lambda r: {"labels": np.roll(r.labels, 1)}
    )
    party, data = session.party(A), session.data[A]
    known = (session.journals[A], session.memories[A])
    with pytest.raises(TaskRefused):
        party.conclude(*known, swapped, data)
    with pytest.raises(TaskRefused):
        party.conclude(*known, signed(session, swapped), data)
    lines = packets.parse(result).history  # as they were signed
    retold = packets.encode_packet(replace(packets.parse(swapped), history=lines))
    with pytest.raises(TaskRefused):
        party.conclude(*known, retold, data)


def test_a_quorum_of_signatures_is_enough_where_a_quorum_goes_on() -> None:
    name = "llf"
    one = next(
        e for e in catalogue.protocol(name).reference().examples() if e.params.quorum
    )
    session = begun(one, SEED, simulation.Session)
    late = one.layout.names[-1]
    while not session.is_over:
        closing = session.open.stage == signatures.CLOSING
        session.play_round(absent=[late] if closing else [])
    outcomes = session.outcomes()
    assert set(outcomes) == set(one.layout.names), "who is late gets its labels too"
    few = packets.parse(session.final_step.results[late])
    kept = few.signatures.copy()
    kept[: len(kept) - one.params.quorum + 1] = 0
    lie = packets.encode_packet(replace(few, signatures=kept))
    known = (session.journals[late], session.memories[late])
    with pytest.raises(ProtocolFailed, match="have signed, not"):
        session.party(late).conclude(*known, lie, session.data[late])


def test_one_group_is_told_one_thing() -> None:
    layout = Layout.lattice(2, 2)
    names = layout.names
    assert transcript.group_digests(
        layout, "row", dict(zip(names, "aabb", strict=True))
    ) == [
        "a",
        "b",
    ]
    assert transcript.group_digests(layout, "column", {names[0]: "a"}) == ["a", ""]
    with pytest.raises(ValueError, match="received different tasks"):
        transcript.group_digests(layout, "row", dict(zip(names, "abbb", strict=True)))


def test_a_contribution_tells_no_transcript() -> None:
    session = dummies()
    answer = packets.parse(session.answer(A).contribution)
    history = packets.parse(session.open.tasks[A]).history
    lie = packets.encode_packet(replace(answer, history=history))
    with pytest.raises(CoterieError, match="Only the analyst sends"):
        engine.check_contribution(session.agreement, session.open.tasks[A], lie)
