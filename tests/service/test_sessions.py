"""Sessions: from invitation to end, and parties that stop for good."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from hashlib import sha256
from itertools import product
from typing import Any

import httpx
import numpy as np
import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session as Transaction
from support.analyst_process import wait_for
from support.in_process import Api, ByHand

from analyst_service import models
from analyst_service.credentials import Role
from analyst_service.members import INVITATION_SECONDS, revoke_invitations
from analyst_service.sessions import apply_event, find_session
from clustering_protocols import simulation
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import CoterieError
from clustering_protocols.engine import packets
from clustering_protocols.engine.analyst import Choosing
from clustering_protocols.engine.journal import find_stop_reason
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.protocols.dummy import Dummy
from clustering_protocols.protocols.llf import LosslessFederated
from clustering_protocols.secrecy.identities import Institution
from clustering_protocols.terms.agreements import read_agreement
from clustering_protocols.terms.terms import Layout, read_terms
from clustering_protocols.wire.states import (
    LEGAL,
    OVER,
    Event,
    SessionState,
    StopReason,
)
from tests.service.samples import problem_of

LAYOUT = Layout.lattice(2, 2)
X = np.random.default_rng(0).normal(size=(40, 6))
PARTS = simulation.split(X, LAYOUT, seed=1)
A, B, *OTHERS = LAYOUT.names
DAY = 86_400


# The table of moves


def test_states_without_moves_are_those_in_which_a_session_is_over() -> None:
    assert set(SessionState) - {state for state, _ in LEGAL} == OVER
    assert set(Event) == {event for _, event in LEGAL}


def test_the_database_moves_exactly_as_the_table_says(file_api: Api) -> None:
    session = file_api.open(Dummy(), PARTS)
    for state, event in product(SessionState, Event):
        change(session, state=state.value, reason=None)
        to = LEGAL.get((state, event))
        with file_api.service.database.write() as transaction:
            row = transaction.get_one(models.Session, session.id)
            now = file_api.clock.now()
            if to is None:
                with pytest.raises(
                    ValueError, match=f"{event} cannot happen .* {state}"
                ):
                    apply_event(transaction, row, event, now)
            else:
                assert apply_event(transaction, row, event, now, reason="why")
        expected = (to or state, None if to is None else "why")
        assert (session.status["state"], session.status["reason"]) == expected
    put_in_state(session, SessionState.COMPLETED)


@pytest.mark.parametrize("moved", ["state", "round", "attempt"])
def test_a_session_that_has_moved_since_it_was_read_stays(api: Api, moved: str) -> None:
    session = api.open(Dummy(), PARTS).join()
    with api.service.database.read() as transaction:
        row = transaction.get_one(models.Session, session.id)
    change(session, **{moved: {"state": "stepping"}.get(moved, 9)})
    before = api.stored()
    with api.service.database.write() as transaction:
        now = api.clock.now()
        assert not apply_event(transaction, row, Event.ROUND_COMPLETE, now)
    assert api.stored() == before


def put_in_state(session: ByHand, state: SessionState) -> None:
    change(session, state=state.value)


def change(session: ByHand, **values: Any) -> None:
    with session.api.service.database.write() as transaction:
        update = sa.update(models.Session).where(models.Session.id == session.id)
        transaction.execute(update.values(**values))


# Opening


OTHER_TERMS: dict[str, dict[str, Any]] = {
    "title": {"about": {"title": "Another"}},
    "seed": {"seed": 1},
    "parameter": {"protocol": {"name": "dummy", "params": {"n_clusters": 3}}},
    "protocol": {"protocol": {"name": "dc", "params": {"n_clusters": 3}}},
    "layout": {"layout": Layout.lattice(2).model_dump(mode="json")},
    "deadline": {"deadlines": {"round": 60}},
    "guard": {"guards": {"minimum_rows": 11}},
}


def test_a_session_id_with_other_terms_is_taken(file_api: Api) -> None:
    session = file_api.open(Dummy(), PARTS)
    before = file_api.stored()
    for other in OTHER_TERMS.values():
        terms = {**session.terms, **other}
        refusal = file_api.send("PUT", session.path, session.key, json=terms)
        assert problem_of(refusal) is Problem.SESSION_EXISTS
    assert file_api.stored() == before


UNFIT: list[dict[str, Any]] = [
    {"protocol": {"name": "unknown", "params": {}}},
    {"protocol": {"name": "dc", "params": {"n_clusters": 2, "features": [[]]}}},
    {"layout": {"slots": [{"name": "a", "row": 1, "column": 0}]}},
    {"seed": 2**53},
    {"about": {"title": "a\x1b[8mb"}},
    {"about": {"title": "\ud800"}},
    {"surprise": 1},
]


def test_terms_and_ids_that_do_not_fit_are_refused_and_leave_no_trace(
    file_api: Api,
) -> None:
    session = file_api.open(Dummy(), PARTS)
    before = file_api.stored()
    for unfit in UNFIT:
        text = json.dumps({**session.terms, **unfit})
        refusal = file_api.send("PUT", f"{session.path}-new", session.key, content=text)
        assert problem_of(refusal) is Problem.INVALID_PARAMETERS
    for name in ("A", "a b", "-a", "a" * 64, "ä", "%00", ".."):
        path = f"/v1/sessions/{name}"
        refusal = file_api.send("PUT", path, session.key, json=session.terms)
        assert refusal.status_code in {404, 422}
    assert file_api.stored() == before


def test_two_requests_open_one_session_at_once(shared_api: Api) -> None:
    session = shared_api.open(Dummy(), PARTS)
    path = f"{session.path}-new"
    with ThreadPoolExecutor(8) as threads:
        responses = list(
            threads.map(
                lambda _: shared_api.send("PUT", path, session.key, json=session.terms),
                range(8),
            )
        )
    statuses = [response.status_code for response in responses]
    assert statuses.count(201) == 1
    # who was overtaken while opening it is asked to try again, and finds it
    assert set(statuses) <= {200, 201, 503}
    again = shared_api.send("PUT", path, session.key, json=session.terms)
    assert again.status_code == 200


# Deadlines, by a clock whose hand moves


def open_short(api: Api, params: Dummy | None = None) -> ByHand:
    deadlines = {"recruiting": 100, "round": 10}
    return api.open(params or Dummy(), PARTS, deadlines=deadlines)


def test_recruiting_expires_at_its_deadline_and_not_before(api: Api) -> None:
    session = open_short(api)
    session.join(*LAYOUT.names[1:])
    api.clock.forward(99.999)
    api.turn()
    assert session.status["state"] == "recruiting"
    api.clock.forward(0.001)
    api.turn()
    assert (session.status["state"], session.status["reason"]) == (
        "expired",
        Problem.DEADLINE_PASSED.slug,
    )
    assert_over(session.try_join(A), "expired", Problem.DEADLINE_PASSED)


@pytest.mark.threat(48)
@pytest.mark.parametrize(
    ("params", "n_answers"), [(Dummy(), 0), (Dummy(), 3), (Dummy(quorum=3), 2)]
)
def test_a_round_without_a_quorum_expires_at_its_deadline(
    api: Api, params: Dummy, n_answers: int
) -> None:
    session = open_short(api, params).join()
    for slot in LAYOUT.names[:n_answers]:
        session.answer(slot)
    api.clock.forward(9.999)
    api.turn()
    assert session.status["state"] == "collecting"
    api.clock.forward(0.001)
    api.turn()
    assert session.status["state"] == "expired"
    assert "round 1" in session.status["detail"]
    assert_over(session.task(A), "expired", Problem.DEADLINE_PASSED)


def test_each_round_has_a_deadline_of_its_own(api: Api) -> None:
    session = open_short(api).join()
    for _ in range(5):
        api.clock.forward(9)
        api.turn()
        assert session.status["state"] == "collecting"
        session.answer()
    assert session.status["state"] == "completed"


def test_a_round_with_a_quorum_closes_exactly_at_its_deadline(api: Api) -> None:
    session = open_short(api, Dummy(quorum=3)).join().until("count")
    late = session.reply(LAYOUT.names[3])
    session.answer(*LAYOUT.names[:3])
    api.clock.forward(9.999)
    api.turn()
    assert (session.status["state"], session.status["round"]) == ("collecting", 3)
    api.clock.forward(0.001)
    api.turn()
    assert (session.status["state"], session.status["round"]) == ("collecting", 4)
    assert problem_of(session.put(LAYOUT.names[3], late)) is Problem.ROUND_CLOSED
    session.finish()
    assert session.status["state"] == "completed"


# Cancelling


def assert_over(response: httpx.Response, state: str, reason: Problem | None) -> None:
    assert problem_of(response) is Problem.SESSION_OVER
    assert response.json()["state"] == state
    assert response.json().get("reason") == (reason and reason.slug)


STAGES_OF_LIFE: dict[str, Callable[[ByHand], Any]] = {
    "recruiting": lambda session: session,
    "collecting": lambda session: session.join(),
    "stepping": lambda session: put_in_state(session.join(), SessionState.STEPPING),
}


@pytest.mark.parametrize("when", STAGES_OF_LIFE)
def test_cancelling_returns_the_session_and_is_repeatable(
    file_api: Api, when: str
) -> None:
    session = file_api.open(Dummy(), PARTS)
    STAGES_OF_LIFE[when](session)
    first = session.cancel()
    assert (first.status_code, first.json()["state"]) == (200, "cancelled")
    assert first.json()["reason"] == Problem.CANCELLED.slug
    before = file_api.stored()
    assert session.cancel().json() == first.json() == session.status
    assert file_api.stored() == before
    put_in_state(session, SessionState.COMPLETED)
    change(session, reason=None, detail=None)
    assert_over(session.cancel(), "completed", None)


def test_a_failed_session_tells_why(api: Api) -> None:
    session = api.open(Dummy(fail_at="confirm"), PARTS).join().finish()
    assert session.status["state"] == "failed"
    assert "confirm" in session.status["detail"]
    assert_over(session.task(A), "failed", Problem.PROTOCOL_FAILED)


# Agreement and result


def test_the_agreement_exists_after_all_joined_and_stays_fixed(file_api: Api) -> None:
    session = file_api.open(Dummy(), PARTS)
    path = f"{session.path}/agreement"
    session.join(*LAYOUT.names[1:])
    early = file_api.send("GET", path, session.key)
    assert problem_of(early) is Problem.NOT_READY
    session.join(A)
    bytes_first = file_api.send("GET", path, session.tokens[A]).content
    agreement, _ = read_agreement(bytes_first)
    assert [m.slot for m in agreement.roster] == list(LAYOUT.names)
    assert [m.n_rows for m in agreement.roster] == [20] * 4
    asked = packets.parse(session.task(A).content).address
    assert asked.agreement == sha256(bytes_first).hexdigest()
    session.finish()
    assert file_api.send("GET", path, session.key).content == bytes_first


# Invitations


def preview(api: Api, code: str) -> httpx.Response:
    return api.send("POST", "/v1/join/preview", json={"code": code})


def test_a_preview_shows_terms_and_risks_and_uses_nothing_up(file_api: Api) -> None:
    session = file_api.open(Dummy(), PARTS, about={"title": "Wards"})
    unread = preview(file_api, session.codes[A]).json()
    before = file_api.stored()
    shown = [preview(file_api, session.codes[A]).json() for _ in range(2)]
    assert file_api.stored() == before, "but for when it was read first"
    read = [slot["read_at"] is not None for slot in session.status["slots"]]
    assert read == [True, *[False] * (len(LAYOUT.names) - 1)]
    assert unread == shown[0] == shown[1]
    assert (shown[0]["session"], shown[0]["slot"]) == (session.id, A)
    agreed = read_terms(shown[0]["terms"].encode())
    assert (agreed.title, agreed.layout) == ("Wards", LAYOUT)
    assert shown[0]["risks"].keys() == set(agreed.risks) != set()
    assert session.try_join(A).status_code == 200


def test_a_new_invitation_ends_the_earlier_one_of_its_slot(file_api: Api) -> None:
    session = file_api.open(Dummy(), PARTS)
    earlier = dict(session.codes)
    session.codes |= session.invite(A)
    assert problem_of(preview(file_api, earlier[A])) is Problem.INVITATION_EXPIRED
    body = session.joining(A) | {"code": earlier[A]}
    refused = file_api.send("POST", "/v1/join", json=body)
    assert problem_of(refused) is Problem.INVITATION_EXPIRED
    session.join()
    assert session.status["state"] == "collecting"


def test_an_invitation_expires_unless_it_was_used(api: Api) -> None:
    session = api.open(Dummy(), PARTS, deadlines={"recruiting": 60 * DAY}).join(A)
    api.clock.forward(INVITATION_SECONDS)
    unused = LAYOUT.names[1]
    assert problem_of(session.try_join(unused)) is Problem.INVITATION_EXPIRED
    assert session.try_join(A).status_code == 200, "a lost token can be fetched again"
    session.codes |= session.invite(unused)
    assert session.try_join(unused).status_code == 200


@pytest.mark.parametrize(
    ("slots", "why"), [(["r9c9"], "no slot r9c9"), ([A], "Slots are taken: r1c1")]
)
def test_free_slots_alone_are_invited(
    file_api: Api, slots: list[str], why: str
) -> None:
    session = file_api.open(Dummy(), PARTS).join(A)
    path, body = f"{session.path}/invitations", {"slots": slots}
    refusal = file_api.send("POST", path, session.key, json=body)
    assert problem_of(refusal) is Problem.INVALID_PARAMETERS
    assert why in refusal.json()["detail"]
    session.cancel()
    refusal = file_api.send("POST", path, session.key, json=body)
    assert problem_of(refusal) is Problem.SESSION_OVER


def test_a_slot_that_is_listed_twice_is_invited_once(file_api: Api) -> None:
    session = file_api.open(Dummy(), PARTS)
    before = len(session.audit)
    assert list(session.invite(A, A)) == [A]
    assert [entry["slot"] for entry in session.audit[before:]] == [A]


def test_an_invitation_is_for_its_slot_and_institution_alone(file_api: Api) -> None:
    session = file_api.open(Dummy(), PARTS, named=True)
    other = session.member(A, institution=Institution("", bytes(32)))
    refusal = session.try_join(A, other)
    assert problem_of(refusal) is Problem.KEY_NOT_AUTHENTIC
    assert "an institution that the terms do not expect" in refusal.json()["detail"]
    refusal = session.try_join(A, session.member(B))
    assert problem_of(refusal) is Problem.INVALID_PARAMETERS
    assert "for slot 'r1c1'" in refusal.json()["detail"]


def test_while_a_step_is_computed_nobody_is_awaited(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join()
    answer, path = session.reply(A), f"{session.path}/deadline"
    later = {"deadline": (api.clock.now() + timedelta(days=99)).isoformat()}
    put_in_state(session, SessionState.STEPPING)
    refusal = api.send("PUT", path, session.key, json=later)
    assert problem_of(refusal) is Problem.NOT_READY
    assert problem_of(session.put(A, answer)) is Problem.ROUND_CLOSED
    session.cancel()
    refusal = api.send("PUT", path, session.key, json=later)
    assert problem_of(refusal) is Problem.SESSION_OVER


def test_one_run_is_chosen_once_all_are_done(api: Api) -> None:
    params, runs = LosslessFederated(n_clusters=3), {"n_clusters": [2, 3]}
    parts = simulation.split(X, Layout.lattice(3), seed=1)
    session = api.open(params, parts, evaluation=runs)

    def choose(n_clusters: int) -> httpx.Response:
        body = {"n_clusters": n_clusters}
        return api.send("PUT", f"{session.path}/choice", session.key, json=body)

    assert problem_of(choose(4)) is Problem.INVALID_PARAMETERS
    assert problem_of(choose(3)) is Problem.NOT_READY
    put_in_state(session, SessionState.CHOOSING)
    assert choose(3).json()["state"] == choose(3).json()["state"] == "stepping"
    assert problem_of(choose(2)) is Problem.ROUND_CLOSED
    change(session, chosen=None)
    session.cancel()
    assert_over(choose(3), "cancelled", Problem.CANCELLED)


# Declining


def decline(session: ByHand, **changes: Any) -> httpx.Response:
    body = {"code": session.codes[A], "state": "declined", "reason": "No vote."}
    return session.api.send("POST", "/v1/join/decline", json=body | changes)


def slot_of(session: ByHand) -> tuple[str, str | None, bool]:
    [slot] = [s for s in session.status["slots"] if s["name"] == A]
    return slot["state"], slot["reason"], slot["awaited"]


def test_a_party_may_say_why_it_does_not_join_and_join_later(file_api: Api) -> None:
    session = file_api.open(Dummy(), PARTS)
    assert slot_of(session) == ("invited", None, True)
    assert decline(session).status_code == 204
    assert slot_of(session) == ("declined", "No vote.", True)
    before = file_api.stored()
    assert decline(session).status_code == 204
    for changes in (
        *({"state": "joined"}, {"state": "invited"}, {"reason": "two\nlines"}),
        *({"reason": "\x1b[8m"}, {"reason": "x" * 201}),
    ):
        assert problem_of(decline(session, **changes)) is Problem.INVALID_PARAMETERS
    assert file_api.stored() == before, "what is refused or repeated changes nothing"
    decline(session, state="refused", reason="guard-refused")
    assert slot_of(session) == ("refused", "guard-refused", True)
    events = [line["event"] for line in session.audit if "slot" in line]
    assert events[-2:] == ["invited", "declined"], "once, however often it is said"
    assert "No vote." not in json.dumps(session.audit)
    earlier = session.codes[A]
    session.codes |= session.invite(A)
    assert slot_of(session) == ("invited", None, True)
    assert problem_of(decline(session, code=earlier)) is Problem.INVITATION_EXPIRED
    decline(session)
    session.join(A)
    assert slot_of(session) == ("joined", None, False)
    assert problem_of(decline(session)) is Problem.INVITATION_USED
    session.cancel()
    refusal = decline(session, code=session.codes[B])
    assert_over(refusal, "cancelled", Problem.CANCELLED)


# Joining


def test_data_of_another_shape_than_terms_or_group_ask_for_are_refused(
    file_api: Api,
) -> None:
    session = file_api.open(Dummy(), PARTS).join(A)
    few = file_api.open(Dummy(), PARTS, guards={"minimum_rows": 21})
    before = file_api.stored()
    for slot, shape, words in (
        ("r1c2", (21, 3), "row group"),
        ("r2c1", (20, 4), "column group"),
    ):
        refusal = session.try_join(slot, session.member(slot, shape=shape))
        assert problem_of(refusal) is Problem.SHAPE_CONFLICT
        assert words in refusal.json()["detail"]
    assert problem_of(few.try_join(A)) is Problem.GUARD_REFUSED
    assert file_api.stored() == before
    assert session.try_join("r1c2").status_code == 200


def test_terms_that_this_release_would_not_open_are_not_joined(
    api: Api, earlier: Callable[[], AbstractContextManager[None]]
) -> None:
    params = LosslessFederated(n_clusters=3, tol=1e9)
    with earlier():
        session = api.open(params, simulation.split(X, Layout.lattice(3), seed=1))
        body = session.joining(A)
    refusal = api.send("POST", "/v1/join", json=body)
    assert problem_of(refusal) is Problem.INVALID_PARAMETERS
    assert "tol: 1e" in refusal.json()["detail"]


@contextmanager
def held_up(session: ByHand, n_requests: int) -> Iterator[Transaction]:
    """Hold the session's lock until so many requests wait for it."""
    api = session.api
    with api.service.database.write() as transaction:
        assert find_session(transaction, session.id, lock=True)
        yield transaction
        wait_for(lambda: n_waiting(api) in {n_requests, None})


def n_waiting(api: Api) -> int | None:
    engine = api.service.database.engine
    if engine.dialect.name == "sqlite":
        return None
    with engine.connect() as connection:
        return connection.scalar(
            sa.text(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                "AND datname = current_database()"
            )
        )


def test_of_two_that_join_one_slot_at_once_one_gets_it(shared_api: Api) -> None:
    session = shared_api.open(Dummy(), PARTS)
    keys = [session.keys[A], bytes(32)]
    with ThreadPoolExecutor(2) as threads:
        with held_up(session, n_requests=2):
            joining = [threads.submit(session.try_join, A, None, key) for key in keys]
        responses = [future.result(30) for future in joining]
    won, lost = sorted(range(2), key=lambda i: responses[i].status_code)
    assert responses[won].status_code == 200
    assert problem_of(responses[lost]) is Problem.INVITATION_USED
    assert session.try_join(A, None, keys[won]).status_code == 200


def test_an_invitation_that_ends_during_a_join_is_refused(shared_api: Api) -> None:
    session = shared_api.open(Dummy(), PARTS)
    with ThreadPoolExecutor(1) as threads:
        with held_up(session, n_requests=1) as transaction:
            joining = threads.submit(session.try_join, A)
            revoke_invitations(transaction, session.id, [A])
        assert problem_of(joining.result(30)) is Problem.INVITATION_EXPIRED


# A party that stops for good says so in a word, and nobody waits for it any more


def stop(session: ByHand, slot: str, word: str | None = "refused") -> httpx.Response:
    path = f"{session.path}/stopped"
    return session.api.send("POST", path, session.tokens[slot], json={"reason": word})


def said_of(session: ByHand) -> dict[str, str | None]:
    return {slot["name"]: slot["stopped"] for slot in session.status["slots"]}


def test_a_session_that_needs_all_ends_at_once(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join()
    answer = session.reply(A)
    assert stop(session, A).status_code == 204
    status = session.status
    assert (status["state"], status["reason"]) == ("failed", Problem.PARTY_STOPPED.slug)
    assert f"Slot '{A}' stopped for good (refused)" in status["detail"]
    assert said_of(session) == {A: "refused"} | dict.fromkeys(LAYOUT.names[1:])
    told = session.task(B)
    assert problem_of(told) is Problem.SESSION_OVER
    assert told.json()["detail"] == status["detail"]
    own, end = session.audit[-2:]
    assert (own["event"], own["slot"], own["reason"]) == ("stopped", A, "refused")
    assert end["event"] == end["reason"] == Problem.PARTY_STOPPED.slug
    assert problem_of(session.put(A, answer)) is Problem.SESSION_OVER


def test_a_party_that_is_held_is_seen_and_may_go_on(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join()
    assert stop(session, A, "held").status_code == 204
    assert session.status["state"] == "collecting"
    assert said_of(session)[A] == "held"
    assert session.task(A).status_code == 200
    assert stop(session, A, None).status_code == 204
    assert said_of(session)[A] is None
    events = [(line["event"], line.get("reason")) for line in session.audit]
    assert {("stopped", "held"), ("continued", None)} <= set(events)


def test_who_is_held_may_stop_for_good_and_then_go_on_no_more(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join()
    stop(session, A, "held")
    assert stop(session, A, "left").status_code == 204
    before = api.stored()
    assert stop(session, A, "left").status_code == 204
    for word in (None, "data"):
        refused = stop(session, A, word)
        assert problem_of(refused) is Problem.PARTY_STOPPED
        assert "(left)" in refused.json()["detail"]
    assert api.stored() == before


def test_a_stop_before_all_have_joined_ends_the_session(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join(A)
    assert stop(session, A).status_code == 204
    assert session.status["state"] == "failed"
    assert problem_of(session.try_join(B)) is Problem.SESSION_OVER


@pytest.mark.threat(191)
def test_a_stop_is_one_of_few_words_of_the_caller_s_own_slot(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join()
    other = api.open(Dummy(), PARTS).join()
    path, before = f"{session.path}/stopped", api.stored()
    for token in (None, other.tokens[A], session.key, api.key(Role.ADMINISTRATOR)):
        refused = api.send("POST", path, token, json={"reason": "left"})
        assert refused.status_code in {401, 403, 404}
    lie = {"reason": "left", "slot": B}
    words: tuple[Any, ...] = ("", "guard-refused", "minimum_rows", "LEFT", 1, [])
    for said in (lie, *({"reason": word} for word in words)):
        refused = api.send("POST", path, session.tokens[A], json=said)
        assert problem_of(refused) is Problem.INVALID_PARAMETERS
    rows = ("members", "sessions", "audit", "tasks")
    after = api.stored()
    assert [after[0][name] for name in rows] == [before[0][name] for name in rows]
    late = stop(session.finish(), A)
    assert problem_of(late) is Problem.SESSION_OVER
    assert late.json()["state"] == "completed"


# With a quorum


def awaited_in(session: ByHand) -> list[str]:
    return [slot["name"] for slot in session.status["slots"] if slot["awaited"]]


def test_a_round_goes_on_until_all_are_needed(api: Api) -> None:
    session = api.open(Dummy(quorum=3), PARTS).join().until("count")
    late = session.reply(A)
    assert stop(session, A).status_code == 204
    assert awaited_in(session) == [B, *OTHERS]
    assert problem_of(session.put(A, late)) is Problem.PARTY_STOPPED
    session.answer(B, *OTHERS)
    assert session.status["round"] == 4, "no deadline has passed"
    assert session.status["reason"] == Problem.PARTY_STOPPED.slug


@pytest.mark.quick(1)
def test_a_quorum_completes_without_who_stopped(api: Api) -> None:
    rows = Layout.lattice(4, 1)
    params = LosslessFederated(n_clusters=2, quorum=3, max_iter=2)
    many = np.random.default_rng(0).normal(size=(160, 6))
    session = api.open(params, simulation.split(many, rows, seed=1)).join()
    while "update" not in session.status["stage"]:
        session.answer(*awaited_in(session))
    assert stop(session, rows.names[0], "left").status_code == 204
    while session.status["state"] == "collecting":
        assert rows.names[0] not in awaited_in(session)
        session.answer(*awaited_in(session))
    assert session.status["state"] == "completed", session.status["detail"]
    slots = session.status["slots"]
    assert [slot["stopped"] for slot in slots] == ["left", None, None, None]


def test_one_more_than_a_quorum_can_miss_ends_it(api: Api) -> None:
    session = api.open(Dummy(quorum=3), PARTS).join().until("count")
    stop(session, A, "left")
    assert session.status["state"] == "collecting"
    stop(session, B, "data")
    assert session.status["state"] == "failed"
    detail = session.status["detail"]
    assert f"{A!r} stopped for good (left)" in detail
    assert f"{B!r} stopped for good (data)" in detail


def test_a_choice_is_awaited_while_enough_parties_remain(api: Api) -> None:
    parts = simulation.split(X, Layout.lattice(4), seed=1)
    session = api.open(LosslessFederated(n_clusters=2, quorum=3), parts).join()
    put_in_state(session, SessionState.CHOOSING)
    stop(session, parts.layout.names[0], "left")
    assert session.status["state"] == "choosing"
    stop(session, parts.layout.names[1], "left")
    assert session.status["state"] == "failed"


def test_no_choice_is_asked_for_after_a_stop_that_ends_the_session(api: Api) -> None:
    parts = simulation.split(X, Layout.lattice(3), seed=1)
    runs = {"n_clusters": [2, 3], "choose": "later"}
    params = DataCollaboration(n_clusters=3, dimensions="all")
    session = api.open(params, parts, evaluation=runs).join()
    outcome: object = None
    while not isinstance(outcome, Choosing):
        api.driver._collect_outcomes()
        session.answer(turn=False)
        api.driver._start_processes()
        api.driver._start_steps()
        [step] = api.driver._running
        outcome = step.future.result()
    assert stop(session, A, "left").status_code == 204
    api.driver._collect_outcomes()
    assert session.status["state"] == "failed"


def test_a_stop_during_a_step_counts_at_the_next_round(api: Api) -> None:
    session = api.open(Dummy(), PARTS).join()
    session.answer(turn=False)
    assert stop(session, A).status_code == 204
    put_in_state(session, SessionState.STEPPING)
    assert stop(session, B).status_code == 204
    assert session.status["state"] == "stepping"
    put_in_state(session, SessionState.COLLECTING)
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
