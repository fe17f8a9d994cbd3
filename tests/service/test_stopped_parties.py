"""A party that stops for good says so in a word, and nobody waits for it any more."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import pytest

from analyst_service.credentials import Role
from clustering_protocols import simulation
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import CoterieError
from clustering_protocols.engine.journal import find_stop_reason
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.terms.terms import Layout
from clustering_protocols.wire.states import StopReason

if TYPE_CHECKING:
    from support.in_process import Api, ByHand

LAYOUT = Layout.lattice(2, 2)
X = np.random.default_rng(0).normal(size=(40, 6))
PARTS = simulation.split(X, LAYOUT, seed=1)
A, B, *OTHERS = LAYOUT.names


def stop(session: ByHand, slot: str, word: str | None = "refused") -> httpx.Response:
    path = f"{session.path}/stopped"
    return session.api.send("POST", path, session.tokens[slot], json={"reason": word})


def assert_problem(response: httpx.Response, problem: Problem) -> None:
    document = response.json()
    assert (response.status_code, document["type"]) == (problem.status, problem.urn)


def said_of(session: ByHand) -> dict[str, str | None]:
    return {slot["name"]: slot["stopped"] for slot in session.status["slots"]}


def audited(session: ByHand) -> list[dict[str, Any]]:
    lines = session.api.send("GET", f"{session.path}/audit", session.key).json()[
        "lines"
    ]
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("word", [w for w in StopReason if w is not StopReason.HELD])
def test_a_session_that_needs_all_ends_at_once(api: Api, word: StopReason) -> None:
    session = api.open(Dummy(), PARTS).join()
    assert stop(session, A, word).status_code == 204
    status = session.status
    assert (status["state"], status["reason"]) == ("failed", Problem.PARTY_STOPPED.slug)
    assert f"Slot '{A}' stopped for good ({word})" in status["detail"]
    assert said_of(session) == {
        slot: word * (slot == A) or None for slot in LAYOUT.names
    }
    others = session.task(B)
    assert_problem(others, Problem.SESSION_OVER)
    told = others.json()
    assert (told["state"], told["reason"]) == ("failed", Problem.PARTY_STOPPED.slug)
    assert f"Slot '{A}' stopped for good ({word})" in told["detail"]
    own, end = audited(session)[-2:]
    assert (own["event"], own["slot"], own["reason"]) == ("stopped", A, word)
    assert (end["event"], end["reason"]) == (
        Problem.PARTY_STOPPED.slug,
        Problem.PARTY_STOPPED.slug,
    )


def test_a_party_that_is_held_is_seen_and_may_go_on(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join()
    assert stop(session, A, "held").status_code == 204
    assert session.status["state"] == "collecting"
    assert said_of(session)[A] == "held"
    assert session.task(A).status_code == 200
    assert stop(session, A, None).status_code == 204
    assert said_of(session)[A] is None
    events = [(line["event"], line.get("reason")) for line in audited(session)]
    assert {("stopped", "held"), ("continued", None)} <= set(events)


def test_who_is_held_may_stop_for_good_and_then_go_on_no_more(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join()
    stop(session, A, "held")
    assert stop(session, A, "left").status_code == 204
    assert session.status["state"] == "failed"
    refused = stop(session, A, None)
    assert_problem(refused, Problem.PARTY_STOPPED)
    assert said_of(session)[A] == "left"


def test_the_same_word_again_changes_nothing(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join()
    stop(session, A, "left")
    before = api.stored()
    assert stop(session, A, "left").status_code == 204
    refused = stop(session, A, "data")
    assert_problem(refused, Problem.PARTY_STOPPED)
    assert "(left)" in refused.json()["detail"]
    assert api.stored() == before


def test_a_stop_before_all_have_joined_ends_the_session(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join(A)
    assert stop(session, A).status_code == 204
    assert session.status["state"] == "failed"
    assert_problem(session.try_join(B), Problem.SESSION_OVER)


@pytest.mark.threat(191)
def test_nobody_says_it_of_another_slot(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join()
    other = api.open(Dummy(), PARTS).join()
    path, said = f"{session.path}/stopped", {"reason": "left"}
    for token in (None, other.tokens[A], session.key, api.key(Role.ADMINISTRATOR)):
        refused = api.send("POST", path, token, json=said)
        assert refused.status_code in {401, 403, 404}
    lie = api.send("POST", path, session.tokens[A], json=said | {"slot": B})
    assert_problem(lie, Problem.INVALID_PARAMETERS)
    assert set(said_of(session).values()) == {None}
    assert session.status["state"] == "collecting"


@pytest.mark.threat(191)
@pytest.mark.parametrize("word", ["", "guard-refused", "minimum_rows", "LEFT", 1, []])
def test_no_other_word_is_taken(api: Api, word: Any) -> None:
    session = api.open(Dummy(), PARTS).join()
    assert_problem(stop(session, A, word), Problem.INVALID_PARAMETERS)
    assert session.status["state"] == "collecting"


@pytest.mark.threat(191)
def test_nobody_stops_once_the_session_is_completed(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join().finish()
    before = api.stored()
    late = stop(session, A)
    assert_problem(late, Problem.SESSION_OVER)
    assert late.json()["state"] == "completed"
    assert api.stored() == before


@pytest.mark.threat(191)
def test_an_answer_behind_a_stop_is_refused(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join()
    answer = session.reply(A)
    stop(session, A)
    assert_problem(session.put(A, answer), Problem.SESSION_OVER)


# With a quorum


def awaited_in(session: ByHand) -> list[str]:
    return [slot["name"] for slot in session.status["slots"] if slot["awaited"]]


def test_a_round_goes_on_until_all_are_needed(api: Api) -> None:
    session = api.open(Dummy(quorum=3), PARTS).join().until("count")
    late = session.reply(A)
    assert stop(session, A).status_code == 204
    assert awaited_in(session) == [B, *OTHERS]
    assert_problem(session.put(A, late), Problem.PARTY_STOPPED)
    session.answer(B, *OTHERS)
    assert session.status["round"] == 4, "no deadline has passed"
    assert session.status["reason"] == Problem.PARTY_STOPPED.slug


@pytest.mark.parametrize("word", ["left", "software"])
def test_a_quorum_completes_without_who_stopped(api: Api, word: str) -> None:
    rows = Layout.lattice(4, 1)
    params = LosslessFederated(n_clusters=2, quorum=3, max_iter=6)
    session = api.open(params, simulation.split(X, rows, seed=1)).join()
    while "update" not in session.status["stage"]:
        session.answer(*awaited_in(session))
    assert stop(session, rows.names[0], word).status_code == 204
    while session.status["state"] == "collecting":
        assert rows.names[0] not in awaited_in(session)
        session.answer(*awaited_in(session))
    assert session.status["state"] == "completed", session.status["detail"]
    slots = session.status["slots"]
    assert [slot["stopped"] for slot in slots] == [word, None, None, None]


def test_one_more_than_a_quorum_can_miss_ends_it(api: Api) -> None:
    session = api.open(Dummy(quorum=3), PARTS).join().until("count")
    stop(session, A, "left")
    assert session.status["state"] == "collecting"
    stop(session, B, "data")
    assert session.status["state"] == "failed"
    detail = session.status["detail"]
    assert f"{A!r} stopped for good (left)" in detail
    assert f"{B!r} stopped for good (data)" in detail


def test_a_stop_during_a_step_counts_at_the_next_round(
    api: Api,
) -> None:
    session = api.open(Dummy(), PARTS).join()
    session.answer(turn=False)
    assert stop(session, A).status_code == 204
    api.turn()
    assert session.status["state"] == "failed"
    assert said_of(session)[A] == "refused"


def test_who_answered_before_it_stopped_counts_in_that_round(api: Api) -> None:
    session = api.open(Dummy(quorum=3), PARTS).join().until("count")
    session.answer(A, turn=False)
    stop(session, A)
    session.answer(B, turn=False)
    api.turn()
    assert session.status["stage"] == "count", "two more are awaited"


# Words


def test_every_problem_of_the_catalogue_has_a_word() -> None:
    words = {each: find_stop_reason(CoterieError.of(each, "")) for each in Problem}
    assert set(words.values()) == set(StopReason) - {StopReason.HELD}
    assert words[Problem.GUARD_REFUSED] is StopReason.REFUSED
    assert words[Problem.INVALID_DATA] is StopReason.DATA
    assert words[Problem.INTERNAL] is StopReason.SOFTWARE
