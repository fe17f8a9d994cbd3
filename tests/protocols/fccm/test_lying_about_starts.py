"""Sites of `fccm` refuse an analyst or a leader that names the wrong starts."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from support.coclusters import Session, blocks
from support.lies import alter, tell

from clustering_protocols.common.errors import InvalidArray, ProtocolFailed
from clustering_protocols.contract import Ask
from clustering_protocols.contract.party import Memory
from clustering_protocols.engine import packets
from clustering_protocols.protocols.fccm import (
    CoClustering,
    maths,
    messages,
    roles,
    site_state,
)

GROUPS = (10, 8, 6)
X = blocks(60, 24, groups=3)
EMPTY, TOTAL = np.empty(0, dtype=np.uint64), np.ones(3, dtype=np.uint64)
made = partial(
    CoClustering,
    small_cohorts="allow",
    n_clusters=3,
    lambda_u=0.02,
    lambda_w=10.0,
    n_init=6,
)


def at(number: int, **more: Any) -> Session:
    s = Session(made(**more), X, GROUPS)
    s.play_until(messages.Add, number)
    return s


def some_rest() -> Session:
    # a seed of which some starts rest while others go on
    s = Session(made(), X, GROUPS, seed=6)
    s.play_until(messages.Add, 2)
    while asked(s) == list(range(6)):
        s.play_round()
    assert 1 < len(asked(s)) < 6
    return s


def asked(s: Session) -> list[int]:
    task = s.open.tasks["r1c1"]
    return list(packets.parse(task).header.record["values"]["lanes"])


def all_refuse(s: Session, match: str) -> None:
    for slot in s.open.tasks:
        with pytest.raises(ProtocolFailed, match=match):
            s.answer(slot)


Naming = Callable[[list[int]], list[int]]
OTHERS: dict[str, tuple[Naming, str]] = {
    "one that rests": (
        lambda on: sorted([min({*range(6)} - {*on}), *on]),
        "has converged",
    ),
    "all that ever were": (lambda _: list(range(6)), "has converged"),
    "one that never was": (lambda on: [*on, 6], "not under way"),
    "one twice": (lambda on: [*on, on[-1]], "not under way"),
    "in another order": (lambda on: on[::-1], "not under way"),
    "one less": (lambda on: on[1:], "leaves out"),
    "one alone": (lambda on: on[-1:], "leaves out"),
    "none": (lambda _: [], "out of order"),
}


@pytest.mark.parametrize("lie", OTHERS)
def test_every_site_refuses_starts_that_are_not_running(lie: str) -> None:
    """All sites receive the same lie, so the transcript does not reveal it."""
    name, match = OTHERS[lie]
    s = some_rest()
    tell(s, lambda task: {"lanes": name(task.lanes)})
    all_refuse(s, match)


@pytest.mark.parametrize(
    "lie", [{"number": 2}, {"lanes": [0]}, {"overflowed": [0]}, {"total": TOTAL}]
)
def test_the_first_sums_are_of_every_start_and_follow_no_total(lie: Any) -> None:
    s = at(1)
    tell(s, lambda _: lie)
    all_refuse(s, "out of order")


@pytest.mark.parametrize(
    "lie",
    [lambda _: {"overflowed": [1, 3]}, lambda t: {"total": t.total[:-1]}],
    ids=["beside an overflow", "in part"],
)
def test_a_total_comes_whole_or_not_at_all(lie: Callable[[Any], Any]) -> None:
    s = at(4)
    tell(s, lie)
    with pytest.raises(InvalidArray, match="before"):
        s.answer("r1c1")


def test_a_total_below_the_share_of_a_site_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tags do not help: the sites that send false numbers compute valid tags for them."""
    s, honest = at(2), maths.aggregation
    monkeypatch.setattr(maths, "aggregation", lambda R, W: -honest(R, W))
    s.play_round()
    all_refuse(s, "less than this site's share")


@pytest.mark.parametrize("number", [3, 5])
@pytest.mark.parametrize(
    ("named", "match"), [([], "leaves out"), (list(range(6)), "under way")]
)
def test_sizes_are_not_told_while_a_start_is_under_way(
    number: int, named: list[int], match: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = roles._ask

    def ask_to_tell(session: Any, now: messages.SumsState, task: messages.Add) -> Ask:
        lie = messages.ReportSizes(**dict(task, lanes=named))
        telling = {"number": 0, "lanes": [], "telling": True}
        return honest(session, now.model_copy(update=telling), lie)

    s = at(number - 1)
    monkeypatch.setattr(roles, "_ask", ask_to_tell)
    s.play_round()
    all_refuse(s, match)


def on(s: Session) -> list[int]:
    known = s.recall("r1c1", messages.Memberships)
    return site_state.lanes_under_way(s.context("r1c1"), known)


def test_a_false_overflow_of_a_start_costs_rounds_alone() -> None:
    honest = Session(made(), X, GROUPS).follow()
    s = at(4)
    tell(s, lambda _: {"overflowed": [1, 3], "total": EMPTY})
    s.follow()
    U = s.recall("r1c1", messages.Memberships).objects
    expected = honest.recall("r1c1", messages.Memberships).objects
    np.testing.assert_allclose(U, expected, atol=1e-6)
    assert len(s.received_messages) == len(honest.received_messages) + 3


def test_a_hidden_overflow_is_refused_by_the_site_it_concerns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise a total without this share would count as the total of all sites."""
    monkeypatch.setattr(site_state, "HEADROOM", 1.0)
    s = at(1, lambda_w=0.3)
    while not any(overflows(s, slot) for slot in s.data):
        s.play_round()
    who = [slot for slot in s.data if overflows(s, slot)]
    total = roles.add_tagged_shares(
        packets.parse(m.payload).arrays["words"] for m in s.received_messages[-3:]
    )
    tell(s, lambda _: {"overflowed": [], "total": total})
    for slot in who:
        with pytest.raises(ProtocolFailed, match="overflowed"):
            s.answer(slot)


def overflows(s: Session, slot: str) -> bool:
    known = s.memories[slot].get(messages.Memberships)
    return known is not None and bool(site_state.overflows(s.session, known).any())


@pytest.mark.parametrize("named", [None, [6], [0, 9], [], [0, 1, 2], [1, 0]])
def test_a_leader_that_names_other_starts_ends_the_session(
    named: list[int] | None,
) -> None:
    s = at(4)
    answers = {slot: s.ask_party(slot, task) for slot, task in s.open.tasks.items()}
    s.memories |= {slot: answer.memory for slot, answer in answers.items()}
    given = {slot: answer.contribution for slot, answer in answers.items()}
    given["r1c1"] = alter(s.agreement, given["r1c1"], lambda _: {"under_way": named})
    with pytest.raises(ProtocolFailed, match="start"):  # noqa: PT012  now or next
        s.advance(given)
        s.play_round()


def remembering(s: Session, slot: str, moved: float, lane: int) -> None:
    known = s.recall(slot, messages.Memberships)
    found = known.moved.copy()
    found[lane] = moved
    changed = known.model_copy(update={"moved": found})
    s.memories[slot] = Memory(s.memories[slot].entries).remember([changed])


@pytest.mark.parametrize("way", [-1, 1])
def test_a_site_accepts_the_leaders_decision_within_rounding(way: int) -> None:
    """Whether the start has converged or not; with a larger difference the site stops."""
    s = some_rest()
    before = s.recall("r1c2", messages.Memberships).lanes
    lane = asked(s)[0] if way < 0 else next(iter({*before} - {*asked(s)}))
    tol = s.params.tol
    remembering(s, "r1c2", tol + way * 0.9e-9, lane)
    s.answer("r1c2")
    remembering(s, "r1c2", tol + way * 1.1e-9, lane)
    with pytest.raises(ProtocolFailed, match="start"):
        s.answer("r1c2")
    s.answer("r1c3")


def at_the_end(**more: Any) -> Session:
    s = Session(made(**more), X, GROUPS)
    s.play_until(messages.ReportSizes)
    return s


def test_marks_cover_which_start_won() -> None:
    """Sites that agree on sizes but not on the best start get no result."""
    s = at_the_end(n_init=2)
    given = {slot: s.answer(slot).contribution for slot in s.open.tasks}
    known = s.recall("r1c3", messages.Memberships)
    twice = np.tile(known.objects[:, site_state.best_lane(known) * 3 :][:, :3], 2)
    other = np.roll([2.0, 1.0], 1 - site_state.best_lane(known))
    same_sizes = known.model_copy(update={"objects": twice, "criteria": other})
    s.memories["r1c3"] = Memory(s.memories["r1c3"].entries).remember([same_sizes])
    assert site_state.best_lane(same_sizes) != site_state.best_lane(known)
    given["r1c3"] = s.answer("r1c3").contribution
    with pytest.raises(ProtocolFailed, match="do not agree"):
        s.advance(given)
