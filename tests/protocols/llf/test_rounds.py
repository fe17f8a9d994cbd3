"""`llf` round by round: absent parties, and an analyst that lies."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from support.lies import alter, altered
from support.tables import cut

from clustering_protocols import engine
from clustering_protocols.common.errors import (
    GuardRefused,
    InvalidArray,
    NotReady,
    ProtocolFailed,
)
from clustering_protocols.engine import packets
from clustering_protocols.protocols.llf import (
    LosslessFederated as Llf,
    maths,
    messages,
    rows_party,
    rows_round,
)
from clustering_protocols.protocols.llf.maths import (
    ROUNDING_MARGIN,
    has_converged,
    split_sums,
)
from clustering_protocols.protocols.llf.rows_party import RowsParty
from clustering_protocols.protocols.llf.rows_round import RowsRound
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.shared_stages.starts.messages import StartCentroids
from clustering_protocols.simulation import Session
from clustering_protocols.terms.terms import Layout, Slot
from tests.protocols.llf.llf_sessions import START, plus, rows, session, start_session


def expected(away: Mapping[int, Collection[str]], n_parties: int = 5) -> FloatArray:
    names = Layout.lattice(n_parties).names
    parts = dict(zip(names, np.array_split(rows(), n_parties), strict=True))
    V = np.array(START)
    for update in range(1, 41):
        left = [parts[name] for name in names if name not in away.get(update, ())]
        X = np.vstack(left)
        labels = cdist(X, V).argmin(axis=1)
        moved = np.array([X[labels == c].mean(axis=0) for c in range(3)])
        rests = np.linalg.norm(moved - V) <= 1e-5
        V = moved
        if rests:
            break
    return V


def number_of(s: Session) -> int:
    task = packets.parse(next(iter(s.open.tasks.values())))
    return int(task.header.record["values"]["number"])


def ends_alike(s: Session, V: FloatArray) -> None:
    outcomes = s.outcomes()
    assert len({o.centroids.tobytes() for o in outcomes.values()}) == 1
    V = V[cdist(outcomes["r1c1"].centroids, V).argmin(axis=1)]  # as they are numbered
    for slot, outcome in outcomes.items():
        np.testing.assert_allclose(outcome.centroids, V, rtol=1e-9)
        own = np.vstack(list(s.data[slot].batches()))
        assert np.array_equal(cdist(own, V).argmin(axis=1), outcome.labels)


@pytest.mark.parametrize("called", ["abc", "cba"])
@pytest.mark.parametrize("init", ["careful", "random_party"])
def test_the_first_slot_settles_the_start_whatever_it_is_called(
    init: Any, called: str
) -> None:
    layout = Layout(
        slots=tuple(Slot(name=n, row=i, column=0) for i, n in enumerate(called))
    )
    params = Llf(n_clusters=3, init=init, max_iter=2)
    s = Session(params, layout, cut(rows(90), layout, [30] * 3), seed=5)
    s.play_until(messages.Update)
    s.play_round()
    starts = [s.recall(slot, StartCentroids).centroids for slot in called]
    assert all(np.array_equal(V, starts[0]) for V in starts)


@pytest.mark.parametrize("away", [["r3c1"], ["r1c1"], ["r1c1", "r5c1"]])
@pytest.mark.parametrize("update", [1, 3])
@pytest.mark.quick(2)
def test_a_round_is_opened_again_for_those_who_answered(
    away: list[str], update: int
) -> None:
    s = session()
    s.play_until(messages.Update, update)
    first = s.open
    s.play_round(absent=away)
    assert (s.open.round, s.open.attempt) == (first.round, first.attempt + 1)
    assert set(s.open.tasks) == set(first.tasks) - set(away)
    assert number_of(s) == update
    s.run_to_end()
    ends_alike(s, expected({update: away}))


def test_who_comes_back_gets_the_totals_that_it_missed() -> None:
    s = session()
    s.play_until(messages.Update, 3)
    s.play_round(absent=["r4c1"])
    s.play_round()
    tasks = {slot: packets.parse(task) for slot, task in s.open.tasks.items()}
    assert number_of(s) == 4
    numbers = {slot: t.arrays["updates"][:, 0].tolist() for slot, t in tasks.items()}
    assert numbers == {slot: [2, 3] if slot == "r4c1" else [3] for slot in tasks}
    assert tasks["r4c1"].arrays["cohorts"][1].tolist() == [1, 1, 1, 0, 1]
    s.play_round()
    known = [s.recall(slot, messages.Centroids) for slot in tasks]
    assert len({each.centroids.tobytes() for each in known}) == 1
    assert {each.number for each in known} == {3}


def test_the_start_is_found_with_the_first_update_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    s = session()
    s.play_until(messages.Update, 2)
    monkeypatch.delattr(RowsRound, "initial_centroids")
    s.run_to_end()
    ends_alike(s, expected({}))


def test_who_misses_often_is_asked_less_often() -> None:
    """Two misses in a row cost a party one round, and three misses three rounds."""
    s = session(tol=0.0)
    s.play_until(messages.Update, 2)
    asked = []
    while len(asked) < 8:
        there = "r3c1" in s.open.tasks
        asked.append(there)
        s.play_round(absent=["r3c1"] if there else [])
        if there:
            s.play_round()
    assert asked == [True, True, False, True, False, False, False, True]


@pytest.mark.parametrize("before", [["r1c1"], []])
def test_fewer_than_three_end_the_session(before: list[str]) -> None:
    s = session(n_parties=4)
    s.play_until(messages.Update, 2)
    if before:
        s.play_round(absent=before)
    with pytest.raises(ProtocolFailed, match="Only 2 parties"):
        s.play_round(absent=["r2c1"] if before else ["r1c1", "r2c1"])


def test_a_round_is_opened_five_times_at_most() -> None:
    s = session(n_parties=10)
    s.play_until(messages.Update, 2)
    names = iter(Layout.lattice(10).names)
    for _ in range(engine.MAX_ATTEMPTS - 1):
        s.play_round(absent=[next(names)])
    assert s.open.attempt == engine.MAX_ATTEMPTS
    with pytest.raises(ProtocolFailed, match="void 5 times"):
        s.play_round(absent=[next(names)])


@pytest.mark.parametrize(
    "kind", [messages.Close, messages.Gather, messages.ReportDigest]
)
@pytest.mark.parametrize("away", ["r1c1", "r4c1"])
@pytest.mark.quick(2)
def test_who_is_away_at_the_end_gets_its_labels_all_the_same(
    kind: Any, away: str
) -> None:
    s = session()
    s.play_until(kind)
    s.play_round(absent=[away])
    s.run_to_end()
    ends_alike(s, expected({}))


@pytest.mark.parametrize(
    ("no_means", "no_figures"),
    [(["r1c1", "r4c1"], ["r2c1"]), (["r5c1"], ["r1c1", "r2c1"])],
)
def test_who_missed_the_means_replaces_parties_that_miss_the_figures(
    no_means: list[str], no_figures: list[str]
) -> None:
    s = session()  # five parties; three are enough
    s.play_until(messages.Close)
    s.play_round(absent=no_means)
    s.play_round()
    tasks = map(packets.parse, s.open.tasks.values())
    assert {task.header.record["kind"] for task in tasks} == {"gather"}
    s.play_round(absent=no_figures)
    s.run_to_end()
    ends_alike(s, expected({}))
    outcome = s.outcomes()["r3c1"]
    pooled, counted = (
        np.vstack([b for n in s.data if n not in away for b in s.data[n].batches()])
        for away in (no_means, no_figures)
    )
    labels, V = cdist(pooled, outcome.centroids).argmin(axis=1), outcome.centroids
    means = np.array([pooled[labels == c].mean(axis=0) for c in range(len(V))])
    distances = cdist(counted, means)[range(len(counted)), cdist(counted, V).argmin(1)]
    assert outcome.cluster_sizes.sum() == len(counted)
    assert outcome.figures[0].inertia == pytest.approx(np.square(distances).sum())


def test_a_cluster_of_parties_that_missed_the_means_is_not_published() -> None:
    """Of 41 rows near the second centroid, 40 are with the party that misses `close`."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(290, 2))
    X[199] += 15.0
    X[250:] += 15.0
    s = start_session(
        X,
        sizes=[50, 50, 50, 50, 90],
        widest=20.0,
        n_clusters=2,
        scaling="none",
        init="given",
        initial_centroids=((0.0, 0.0), (15.0, 15.0)),
        quorum=3,
        choices={slot: {"allow_given_start": True} for slot in Layout.lattice(5).names},
    )
    s.play_until(messages.Close)
    s.play_round(absent=["r5c1"])
    s.run_to_end()
    summary = engine.read_result(s.agreement, s.final_step.summary).arrays
    assert summary["clusters"].tolist() == [0]
    assert summary["sizes"].tolist() == [200]


def test_a_party_absent_at_the_end_labels_its_rows() -> None:
    s = session(max_iter=6, tol=0.0)
    s.play_until(messages.Update, 5)
    while isinstance(s.move, engine.Opened):
        s.play_round(absent={"r2c1"} & set(s.open.tasks))
    last = s.final_step.results["r2c1"]
    with pytest.raises(NotReady):
        s.outcome_of("r2c1", last, None)
    outcomes = s.outcomes()
    assert len({o.centroids.tobytes() for o in outcomes.values()}) == 1
    V = outcomes["r1c1"].centroids
    own = np.vstack(list(s.data["r2c1"].batches()))
    assert np.array_equal(outcomes["r2c1"].labels, cdist(own, V).argmin(axis=1))
    assert outcomes["r2c1"].report == outcomes["r1c1"].report
    counted = sum(
        s.data[slot].n_rows for slot in Layout.lattice(5).names if slot != "r2c1"
    )
    assert outcomes["r2c1"].cluster_sizes.sum() == counted


LIES: dict[str, Any] = {
    "counts that add up": lambda t: {"totals": plus(t.totals, (-1, 1), (-2, -1))},
    "counts below zero": lambda t: {"totals": plus(t.totals, (-1, 200), (-2, -200))},
    "fewer members": lambda t: {"members": t.members[:-1]},
    "members out of order": lambda t: {"members": t.members[::-1]},
    "members without this party": lambda _: {"members": ["r1c1", "r3c1", "r4c1"]},
    "members that are none": lambda t: {"members": [*t.members, "r9c1"]},
    "two members": lambda _: {"members": ["r1c1", "r2c1"]},
    "another cohort": lambda _: {"cohorts": np.array([[1, 1, 1, 1, 0]], np.uint8)},
    "no cohort": lambda _: {"cohorts": np.zeros((1, 5), np.uint8)},
    "an update skipped": lambda t: {"number": t.number + 1},
    "an update repeated": lambda t: {"number": t.number - 1},
    "a later attempt": lambda t: {"updates": t.updates + np.eye(3, dtype=np.int64)[2]},
    "no member": lambda _: {"members": []},
    "a narrow cohort": lambda _: {"cohorts": np.ones((1, 4), np.uint8)},
    "a wide cohort": lambda _: {"cohorts": np.ones((1, 6), np.uint8)},
    "more words": lambda t: {"totals": np.hstack([t.totals, t.totals[:, :1]])},
}
"""Lies beside those of the vectors of ``spec``, which hold false sums and rounds."""

WHY = {
    "two members": "too few for a masked sum",
    "members out of order": "list of members is wrong",
    "an update skipped": "asks a second time",
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("slot", ["r1c1", "r2c1"])
@pytest.mark.quick(9)
def test_a_lie_to_one_party_ends_the_session(lie: str, slot: str) -> None:
    s = session(quorum=None)
    s.play_until(messages.Update, 3)
    told = {slot: altered(s, slot, LIES[lie])}
    with pytest.raises(
        (ProtocolFailed, GuardRefused, InvalidArray), match=WHY.get(lie)
    ):
        s.run_to_end(forged=told)


def test_fewer_members_than_the_quorum_are_refused() -> None:
    s = session(quorum=4)
    s.play_until(messages.Update, 3)
    lie = altered(s, "r2c1", lambda t: {"members": t.members[:3]})
    with pytest.raises(ProtocolFailed, match="fewer members than the quorum"):
        s.answer("r2c1", lie)


FIRST = np.array([1.0, 0.0, 0.0])
FALSE: dict[str, tuple[Any, str]] = {
    "more rows than joined": (lambda S, n: (S, n + 1), "counts more rows"),
    "fewer rows than joined": (lambda S, n: (S, n - FIRST), "do not add up"),
    "fewer rows than a party has": (
        lambda S, n: (S, n.sum() * FIRST),
        "fewer rows of a cluster than",
    ),
    "rows elsewhere": (
        lambda S, n: (S * (1 + 1 / (1 + n[0])), n),
        "different rows from an earlier total",
    ),
}
"""What parties send instead of sums and counts; vectors of ``spec`` lie in updates only."""


@pytest.mark.parametrize("lie", FALSE)
@pytest.mark.parametrize("task", [messages.Update, messages.Close])
def test_false_numbers_of_parties_end_the_session(
    lie: str, task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tags do not reveal them, because the liar computes valid tags."""
    (change, why), honest = FALSE[lie], maths.join_sums
    s = session(quorum=None)
    s.play_until(messages.Update, 3)
    s.play_until(task)
    with monkeypatch.context() as patch:
        patch.setattr(rows_party, "join_sums", lambda S, n: honest(*change(S, n)))
        s.play_round()
    with pytest.raises(ProtocolFailed, match=why):
        s.play_round()


def test_a_result_moves_no_centroid_on() -> None:
    s = session(quorum=None)
    while not s.is_over:
        s.play_round()
    packet = packets.parse(s.final_step.results["r2c1"])
    result = packet.read([messages.FinalTotals])
    told = result.model_copy(update={"updates": np.array([[99, 1, 1]])})
    with pytest.raises(ProtocolFailed, match="updates after labelling"):
        RowsParty().conclude(s.context("r2c1"), told, s.data["r2c1"])


def test_a_total_that_came_before_is_passed_over() -> None:
    """A party that answered too late knows this total; a false copy changes nothing."""
    s = session(quorum=None)
    s.play_until(messages.Update, 3)

    def twice(task: Any) -> dict[str, Any]:
        return {
            "updates": np.repeat(task.updates, 2, axis=0),
            "cohorts": np.repeat(task.cohorts, 2, axis=0),
            "totals": np.vstack([task.totals, task.totals + np.uint64(1)]),
        }

    s.run_to_end(forged={"r2c1": altered(s, "r2c1", twice)})
    ends_alike(s, expected({}))


def test_a_digest_that_differs_ends_the_session() -> None:
    s = session()
    s.play_until(messages.ReportDigest)
    given = {slot: s.answer(slot).contribution for slot in s.open.tasks}
    given["r4c1"] = alter(s.agreement, given["r4c1"], lambda _: {"digest": "0" * 64})
    with pytest.raises(ProtocolFailed, match="do not agree on the result"):
        s.advance(given)


def test_a_party_that_was_away_for_every_update_reads_its_result() -> None:
    s = session(max_iter=2, tol=0.0)  # init given, quorum 3
    while isinstance(s.move, engine.Opened):
        away = "r4c1" in s.open.tasks and s.open.stage == "updates"
        s.play_round(absent=["r4c1"] if away else [])
    assert s.outcomes()["r4c1"].labels.size == 40


# Totals over the same rows may differ by rounding, and by nothing else


def total(sums: Any, counts: Any) -> messages.Centroids:
    return messages.Centroids(
        number=1,
        centroids=np.array([[0.0, 0.0], [4.0, 0.0]]),
        moved=None,
        members=["a", "b", "c"],
        sums=np.array(sums, float),
        weights=np.array(counts, float),
    )


BEFORE = total([[3.0, 1.0], [17.0, 0.0]], [6, 4])


@pytest.mark.parametrize(
    ("slack", "squares", "most"),
    [
        # each total lies a unit a row off, and the centroids stand four apart
        (np.full(2, 1e-5), 0.0, 1e-5),
        # a billionth of all squares: of 840, and of 10 rows of which none is beyond 16
        (np.zeros(2), 840.0, 1.25e-7),
    ],
)
def test_rows_may_seem_farther_by_the_slack_alone(
    slack: FloatArray, squares: float, most: float
) -> None:
    def midway(off: float) -> messages.Centroids:
        return total([[5.0 + off, 1.0], [15.0 - off, 0.0]], [7, 3])

    rows_round.check_no_farther(BEFORE, midway(0.96 * most), slack, squares)
    with pytest.raises(ProtocolFailed):
        rows_round.check_no_farther(BEFORE, midway(1.04 * most), slack, squares)


def test_the_slack_covers_rows_rounded_up_once_and_down_once() -> None:
    place = rows_round.RowsRound(session().context("r1c1"))
    units = split_sums(place.encoding.unit, 3)[0][0]
    assert np.array_equal(place.slack * units, [2 * 200.0] * 2)


def test_members_allow_the_leader_a_rounding_of_what_moved() -> None:
    params = Llf(n_clusters=2, tol=1e-5)
    for moved, leader, member in (
        (None, False, False),
        (1e-5, True, True),
        (1e-5 * (1 + 1e-12), False, True),
        (1.000001e-5, False, False),
    ):
        assert has_converged(params, moved) == leader
        assert has_converged(params, moved, ROUNDING_MARGIN) == member
