"""Attacks on linkage by the analyst, by parties of the ring, and by both together."""

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
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.records.arrays import ByteArray
from clustering_protocols.secrecy.ristretto import hash_values
from clustering_protocols.shared_stages.alignment import linkage
from clustering_protocols.shared_stages.alignment.digests import Digests
from clustering_protocols.shared_stages.alignment.identifiers import normalise_id
from clustering_protocols.shared_stages.alignment.linkage import (
    LinkageParty,
    MaskedKeys,
)
from clustering_protocols.shared_stages.alignment.params import Alignment
from clustering_protocols.simulation import Session

X = blobs(80)
HELD = overlapping_rows(3, 20, 6)
FIRST, SECOND, THIRD = "r1c1", "r1c2", "r1c3"
BY_IDS = Alignment(method="ecdh")
PARTY = LinkageParty(BY_IDS)


def session(held: list[list[int]] = HELD) -> Session:
    split = parties(X, held)
    chosen = ProductQuantisation(n_clusters=3, codebook_size=4, alignment=BY_IDS)
    return Session(chosen, split.layout, split.data, seed=5)


def masked(n_values: int, n_masks: int = 1) -> MaskedKeys:
    points = np.zeros((1, n_values, 32), np.uint8)
    return MaskedKeys(points=points, n_masks=n_masks)


@pytest.mark.threat(98)
@pytest.mark.parametrize("surplus", [-1, 1, 1_000_000])
def test_a_party_masks_as_many_values_as_rows_that_joined(surplus: int) -> None:
    """Each value may be a guess, of a party or of all others together."""
    view, joined = session().context(FIRST), len(HELD[2])
    (kept,) = PARTY.receive(view, [PeerMessage(peer=THIRD, content=masked(joined))])
    assert isinstance(kept, MaskedKeys)
    greedy = PeerMessage(peer=THIRD, content=masked(joined + surplus))
    with pytest.raises(InvalidArray):
        PARTY.receive(view, [greedy])


@pytest.mark.threat(98)
@pytest.mark.parametrize("kind", [linkage.PassKeys, linkage.ShowTokens])
def test_a_party_masks_a_list_once_in_a_session(kind: type[Any]) -> None:
    running = session()
    running.play_until(kind)
    task = running.open.tasks[FIRST]
    first = running.answer(FIRST, task)
    kept = first.memory.get(MaskedKeys)
    assert kept is not None
    assert not kept.points.size
    running.memories[FIRST] = first.memory
    with pytest.raises(ProtocolFailed, match="a second time"):
        PARTY.reply(running.context(FIRST), kind(), running.data[FIRST])


@pytest.mark.threat(98)
@pytest.mark.parametrize("n_parties", [2, 3])
def test_all_others_and_the_analyst_compute_no_token_of_a_further_guess(
    n_parties: int,
) -> None:
    """They hold all keys but one, every list and every token."""
    running = session(HELD[:n_parties])
    running.play_until(linkage.SelectLinked)
    tokens = {
        bytes(token)
        for message in running.sent
        for token in packets.parse(message.payload).arrays.get("tokens", [[]])[0]
    }
    others = list(running.data)[1:]
    guess = normalise_id(names(HELD[0])[0], BY_IDS.normalisation).encode()

    def token_under(slots: list[str]) -> bytes:
        views = [replace(running.context(slot), stage=linkage.NAME) for slot in slots]
        purpose = linkage._binding(views[0], "key 0")
        hashes = hash_values([guess], purpose, KeyedStream(bytes(32)))
        first, *more = (linkage._joint_mask(view) for view in views)
        points: ByteArray = first.evaluate(hashes)
        for mask in more:
            points = mask.multiply(points)
        bound = linkage._binding(views[0], "token")
        return linkage.hash_points(bound, points[None]).tobytes()

    assert token_under([FIRST, *others]) in tokens, "with the last key they would"
    assert token_under(others) not in tokens


def test_rows_are_selected_once_in_a_session() -> None:
    running = session()
    running.play_until(linkage.SelectLinked)
    asked = packets.parse(running.open.tasks[FIRST]).read([linkage.SelectLinked])
    running.play_round()
    with pytest.raises(ProtocolFailed, match="a second time"):
        PARTY.reply(running.context(FIRST), asked, running.data[FIRST])


@pytest.mark.parametrize("row", [-1, 0], ids=["one less", "one twice"])
def test_a_party_sends_a_token_for_each_row_of_its_neighbour(row: int) -> None:
    running = session()
    running.play_until(linkage.ShowTokens)
    made = {slot: running.answer(slot).contribution for slot in running.open.tasks}

    def lie(shown: Any) -> dict[str, Any]:
        tokens = shown.tokens.copy()
        tokens[:, -1] = tokens[:, row]
        return {"tokens": tokens if row == 0 else tokens[:, :-1]}

    made[FIRST] = alter(running.agreement, made[FIRST], lie)
    with pytest.raises(InvalidArray):
        running.advance(made)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (masked(2), "digests of the common rows"),
        (Digests(rows="other", columns=""), "have different rows"),
    ],
    ids=["keys", "digests"],
)
def test_of_selected_rows_a_leader_sends_equal_digests_alone(
    content: Any, error: str
) -> None:
    running = session()
    running.play_until(linkage.SelectLinked)
    running.play_round()
    sent = [PeerMessage(peer=FIRST, content=content)]
    with pytest.raises((EnvelopeRefused, ProtocolFailed), match=error):
        PARTY.receive(running.context(SECOND), sent)


@pytest.mark.parametrize(
    ("senders", "content", "error"),
    [
        ([FIRST], masked(len(HELD[0]) - 1), InvalidArray),
        ([FIRST], masked(len(HELD[0]), n_masks=2), EnvelopeRefused),
        ([FIRST], Digests(rows="", columns=""), EnvelopeRefused),
        ([THIRD], masked(len(HELD[0])), EnvelopeRefused),
        (["r9c9"], masked(len(HELD[0])), EnvelopeRefused),
        ([FIRST, THIRD], masked(len(HELD[0])), EnvelopeRefused),
        ([], None, EnvelopeRefused),
    ],
)
def test_a_party_takes_one_list_from_the_party_before_it(
    senders: list[str], content: Any, error: type[Exception]
) -> None:
    sent = [PeerMessage(peer=slot, content=content) for slot in senders]
    with pytest.raises(error):
        PARTY.receive(session().context(SECOND), sent)


def test_what_is_no_point_is_not_masked() -> None:
    running = session(HELD[:2])
    running.play_until(linkage.ShowTokens)
    zeros = masked(len(HELD[1]))
    running.memories[FIRST] = running.memories[FIRST].remember([zeros])
    with pytest.raises(GuardRefused, match="not a point"):
        PARTY.reply(running.context(FIRST), linkage.ShowTokens(), running.data[FIRST])


def elsewhere(view: PartyContext) -> list[PartyContext]:
    """The same party with the same entropy, under another agreement or in another row."""
    other = replace(view.session, agreement_digest="0" * 64)
    moved = view.slot.model_copy(update={"row": view.slot.row + 1})
    return [replace(view, session=other), replace(view, slot=moved)]


def test_points_and_tokens_depend_on_agreement_and_row_group() -> None:
    """One party's key follows from its entropy: only the context keeps values apart."""
    view = replace(session().context(FIRST), stage=linkage.NAME)
    made = []
    for place in (view, view, *elsewhere(view)):
        purpose = linkage._binding(place, "key 0")
        hashes = hash_values([b"ada", b"bob"], purpose, KeyedStream(bytes(32)))
        points = linkage._joint_mask(place).evaluate(hashes)
        same = np.ones((1, 1, 32), np.uint8)
        tokens = linkage.hash_points(linkage._binding(place, "token"), same)
        made.append([*map(bytes, points), tokens.tobytes()])
    assert made[0] == made[1]
    assert len({value for values in made for value in values}) == 3 * 3


def known_to_the_analyst(running: Session) -> list[bytes]:
    plan, _ = engine.load_session(running.agreement)
    digest = plan.agreement_digest
    view = running.context(FIRST)
    return [
        b"",
        plan.terms.session.encode(),
        digest.encode(),
        bytes.fromhex(digest),
        *(linkage._binding(view, purpose) for purpose in ("key 0", "token")),
    ]


def test_a_dictionary_attack_finds_no_id_at_the_analyst() -> None:
    running = session()
    running.run_to_end()
    held = b"\n".join([running.agreement, *running.stored])
    known = known_to_the_analyst(running)
    everybody = names(sorted({row for rows in HELD for row in rows}))
    assert guesses.found(held, everybody, known) == []


@pytest.mark.parametrize("slot", [FIRST, SECOND, THIRD])
def test_a_party_refuses_to_be_left_out(
    monkeypatch: pytest.MonkeyPatch, slot: str
) -> None:
    select = linkage.SelectLinked(rows=np.empty(0, np.int64), n_rows={})
    monkeypatch.setattr(
        linkage.LinkageAnalyst,
        "step",
        lambda _, session, *__: Ask.to_everybody(session, select),
    )
    running = session()
    running.play_until(linkage.SelectLinked)
    with pytest.raises(TaskRefused, match="left out 'pass-keys'"):
        running.answer(slot)
