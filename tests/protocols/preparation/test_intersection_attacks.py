"""Attacks on an intersection by the analyst, by a member, and by both together."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support import guesses
from support.lies import alter
from support.tables import blobs, names, overlapping_rows, parties

from clustering_protocols import engine
from clustering_protocols.common.errors import (
    EnvelopeRefused,
    GuardRefused,
    InvalidArray,
    ProtocolFailed,
    TaskRefused,
)
from clustering_protocols.contract import Ask, PartyContext, PeerMessage
from clustering_protocols.engine import packets
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.numerics.randomness import length_prefixed
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.secrecy.ristretto import hash_ids
from clustering_protocols.shared_stages.alignment import intersection, linkage
from clustering_protocols.shared_stages.alignment.digests import Digests
from clustering_protocols.shared_stages.alignment.linkage import LinkageParty
from clustering_protocols.shared_stages.alignment.params import Alignment
from clustering_protocols.simulation import Session

X = blobs(80)
HELD = overlapping_rows(3, 20, 6)
FIRST, SECOND, THIRD = "r1c1", "r1c2", "r1c3"


def session(held: list[list[int]] = HELD) -> Session:
    split = parties(X, held)
    chosen = ProductQuantisation(
        n_clusters=3, codebook_size=4, alignment=Alignment(method="ecdh")
    )
    return Session(chosen, split.layout, split.data, seed=5)


def receive(view: PartyContext, *incoming: PeerMessage) -> Any:
    return intersection.IntersectionParty(Alignment(method="ecdh")).receive(
        view, incoming
    )


def blinded(number: int, width: int = 32) -> intersection.BlindedIds:
    return intersection.BlindedIds(elements=np.zeros((number, width), np.uint8))


@pytest.mark.threat(98)
def test_a_leader_evaluates_no_more_ids_than_rows_that_joined() -> None:
    view = session().context(FIRST)
    joined = len(HELD[1])
    third = PeerMessage(peer=THIRD, content=blinded(4))
    kept = receive(view, PeerMessage(peer=SECOND, content=blinded(joined)), third)
    assert kept[0].counts == {SECOND: joined, THIRD: 4}
    for asked in (joined + 1, 1_000_000):
        greedy = PeerMessage(peer=SECOND, content=blinded(asked))
        with pytest.raises(GuardRefused, match=f"joined with {joined} rows"):
            receive(view, greedy, third)


@pytest.mark.threat(98)
def test_more_ids_than_enrolled_rows_end_the_session() -> None:
    running = session()
    running.play_until(intersection.Blind)
    guessed = [*HELD[1], *range(1000, 1400)]
    more = np.random.default_rng(0).normal(size=(len(guessed), 2))
    running.data = {**running.data, SECOND: MatrixSource(more, ids=names(guessed))}
    with pytest.raises(InvalidArray, match="more ids than the rows"):
        running.play_round()


@pytest.mark.threat(98)
def test_a_leader_evaluates_once_in_a_session() -> None:
    running = session()
    running.play_until(intersection.Evaluate)
    task = running.open.tasks[FIRST]
    first = running.answer(FIRST, task)
    running.memories[FIRST] = first.memory
    with pytest.raises(ProtocolFailed, match="a second time"):
        running.answer(FIRST, task)


def test_rows_are_selected_once_in_a_session() -> None:
    running = session()
    running.play_until(intersection.Select)
    asked = packets.parse(running.open.tasks[FIRST]).read([intersection.Select])
    running.play_round()
    party = intersection.IntersectionParty(Alignment(method="ecdh"))
    with pytest.raises(ProtocolFailed, match="a second time"):
        party.reply(running.context(FIRST), asked, running.data[FIRST])


def test_a_leader_sends_a_token_for_each_of_its_ids() -> None:
    running = session()
    running.play_until(intersection.Blind)
    made = {slot: running.answer(slot).contribution for slot in running.open.tasks}
    made[FIRST] = alter(
        running.agreement, made[FIRST], lambda count: {"tokens": count.tokens[:-1]}
    )
    with pytest.raises(InvalidArray, match="tokens, not"):
        running.advance(made)


@pytest.mark.parametrize("ways", [intersection.IntersectionParty, LinkageParty])
@pytest.mark.parametrize(
    ("content", "error"),
    [
        (linkage.MaskedKeys(points=np.zeros((1, 2, 32), np.uint8), n_masks=1), None),
        (Digests(rows="other", columns=""), "holds other rows"),
    ],
    ids=["keys", "digests"],
)
def test_of_selected_rows_a_leader_sends_equal_digests_alone(
    ways: Any, content: Any, error: str | None
) -> None:
    running = session()
    running.play_until(intersection.Select)
    running.play_round()
    sent = [PeerMessage(peer=FIRST, content=content)]
    expected = error or "digests of the common rows"
    with pytest.raises((EnvelopeRefused, ProtocolFailed), match=expected):
        ways(Alignment(method="ecdh")).receive(running.context(SECOND), sent)


def test_blinded_ids_from_outside_the_row_group_are_refused() -> None:
    view = session().context(FIRST)
    narrow = (PeerMessage(peer=s, content=blinded(2, 31)) for s in (SECOND, THIRD))
    with pytest.raises(InvalidArray):
        receive(view, *narrow)
    for senders in ((SECOND,), (SECOND, "r9c9"), (SECOND, FIRST)):
        sent = [PeerMessage(peer=slot, content=blinded(2)) for slot in senders]
        with pytest.raises(EnvelopeRefused):
            receive(view, *sent)


ANSWERS = intersection.EvaluatedIds(elements=np.zeros((2, 32), np.uint8))
ORDER = intersection.Select(common=np.ones(3, np.uint8), n_rows={SECOND: 3})


@pytest.mark.parametrize(
    ("sender", "content", "why"),
    [
        (THIRD, ANSWERS, "is not the leader"),
        ("r9c9", ANSWERS, "is not the leader"),
        (FIRST, ORDER, "may send only answers"),
    ],
)
def test_a_member_takes_only_answers_and_only_from_its_leader(
    sender: str, content: Any, why: str
) -> None:
    view = session().context(SECOND)
    with pytest.raises(EnvelopeRefused, match=why):
        receive(view, PeerMessage(peer=sender, content=content))


def elsewhere(view: PartyContext) -> list[PartyContext]:
    """The same party with the same entropy, under another agreement or in another row."""
    other = replace(view.session, agreement_digest="0" * 64)
    moved = view.slot.model_copy(update={"row": view.slot.row + 1})
    return [replace(view, session=other), replace(view, slot=moved)]


def test_key_values_depend_on_agreement_and_row_group() -> None:
    """One party's key follows from its entropy: only the context keeps values apart."""
    here = stage_view()
    ids = [b"ada", b"bob"]
    found = [
        intersection._evaluation_key(view).evaluate(hash_ids(ids, bound(view))).tolist()
        for view in (here, here, *elsewhere(here))
    ]
    assert found[0] == found[1]
    assert len({bytes(value) for values in found for value in values}) == 3 * len(ids)


def test_tokens_depend_on_ids_values_agreement_and_row_group() -> None:
    here = stage_view()
    made = {
        intersection.compute_tokens(bound(view), [name], [value]).tokens.tobytes()
        for view in (here, here, *elsewhere(here))
        for name in (b"ada", b"bob")
        for value in (bytes(32), bytes([1]) * 32)
    }
    assert len(made) == 3 * 2 * 2


@pytest.mark.parametrize(
    "spoil",
    [lambda tokens: tokens[::-1], lambda tokens: np.vstack([tokens[:1], tokens[:-1]])],
    ids=["not sorted", "one twice"],
)
def test_tokens_that_are_not_sorted_once_each_end_the_session(
    spoil: Callable[[Any], Any],
) -> None:
    running = session()
    running.play_until(intersection.Unblind)
    made = {slot: running.answer(slot) for slot in running.open.tasks}
    own = packets.parse(made[SECOND].contribution)
    shown = own.read(stage_of(running).records)
    assert isinstance(shown, intersection.PartyTokens)
    lie = intersection.PartyTokens(tokens=np.ascontiguousarray(spoil(shown.tokens)))
    given = {slot: answer.contribution for slot, answer in made.items()}
    given[SECOND] = packets.write_packet(own.address, lie)
    with pytest.raises(InvalidArray, match="not sorted, each once"):
        running.advance(given)


def stage_of(running: Session) -> Any:
    _, stages = engine.load_session(running.agreement)
    return next(stage for stage in stages if stage.name == running.open.stage)


def bound(view: Any) -> bytes:
    session = view.session
    return intersection.binding(
        session.terms.session, session.agreement_digest, view.slot.row
    )


def known_to_the_analyst(running: Session) -> list[bytes]:
    plan, _ = engine.load_session(running.agreement)
    digest = plan.agreement_digest
    context = bound(running.context(FIRST))
    return [
        b"",
        plan.terms.session.encode(),
        digest.encode(),
        bytes.fromhex(digest),
        context,
        length_prefixed("coterie/token/1", context),
    ]


def test_a_dictionary_attack_finds_no_id_at_the_analyst() -> None:
    running = session()
    running.run_to_end()
    held = b"\n".join([running.agreement, *running.stored])
    known = known_to_the_analyst(running)
    everybody = names(sorted({row for rows in HELD for row in rows}))
    assert guesses.found(held, everybody, known) == []


def stage_view() -> PartyContext:
    return replace(session().context(FIRST), stage="intersection")


@pytest.mark.parametrize(
    ("slot", "task"), [(FIRST, "evaluate"), (SECOND, "unblind"), (THIRD, "unblind")]
)
def test_leader_and_members_refuse_to_be_left_out(
    monkeypatch: pytest.MonkeyPatch, slot: str, task: str
) -> None:
    select = intersection.Select(common=np.empty(0, np.uint8), n_rows={})
    monkeypatch.setattr(
        intersection.IntersectionAnalyst,
        "step",
        lambda _, session, *__: Ask.to_everybody(session, select),
    )
    running = session()
    running.play_until(intersection.Select)
    with pytest.raises(TaskRefused, match=f"left out '{task}'"):
        running.answer(slot)
