"""Starts of `fccm` side by side: each goes as it would alone, and the best one counts."""

from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from support.attacks import sent_packets
from support.coclusters import Session, blocks, kind_of, sites

from clustering_protocols import simulation
from clustering_protocols.engine import packets
from clustering_protocols.protocols.fccm import (
    CoClustering,
    messages,
    reference as pooled,
    site_state,
)
from clustering_protocols.records.arrays import FloatArray
from tests.protocols.fccm.test_results import CLOSE, fccm, start

GROUPS = (27, 24, 21, 18)
X = blocks()
DEGREES = X * np.random.default_rng(3).random(X.shape)
made = partial(CoClustering, small_cohorts="allow", n_clusters=4, max_iter=60, n_init=4)


def memory(s: Session, slot: str = "r1c1") -> messages.Memberships:
    return s.recall(slot, messages.Memberships)


def lane_of(array: FloatArray, lane: int, k: int = 4) -> FloatArray:
    return array[:, lane * k : (lane + 1) * k]


def alone(s: Session, lane: int, taken: int) -> tuple[FloatArray, FloatArray]:
    U = start(s.session.public_stream("fccm", "start", lane), len(s.X), 4)
    return next(islice(fccm(s.X[s.order], U, s.params), taken - 1, None))


SETTINGS: list[dict[str, Any]] = [
    {},
    {"lambda_u": 0.01},
    {"lambda_w": 0.05},  # sums are asked for again
    {"lambda_w": 0.3, "lambda_u": 0.05},
]


@pytest.mark.parametrize("n_init", [1, 4])
@pytest.mark.parametrize("more", SETTINGS, ids=str)
@pytest.mark.quick(3)
def test_every_start_goes_as_it_would_alone(more: dict[str, Any], n_init: int) -> None:
    s = Session(made(n_init=n_init, **more), DEGREES, GROUPS).follow()
    known = memory(s)
    W = np.vstack([memory(s, slot).items for slot in s.data])
    for lane in range(n_init):
        U, own = alone(s, lane, int(known.n_iterations[lane]))
        assert np.abs(lane_of(known.objects, lane) - U).max() <= CLOSE, lane
        assert np.abs(lane_of(W, lane) - own).max() <= CLOSE, lane


def test_shares_that_overflow_disturb_no_other_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(site_state, "HEADROOM", 1.0)
    s = Session(made(lambda_w=0.3, lambda_u=0.05), X, GROUPS).follow()
    over = [each["overflows"] for each in said(s)]
    assert any(0 < len(each) < 4 for each in over)
    for lane, taken in enumerate(memory(s).n_iterations):
        U, _ = alone(s, lane, int(taken))
        assert np.abs(lane_of(memory(s).objects, lane) - U).max() <= CLOSE


def said(s: Session) -> list[dict[str, Any]]:
    return [packet.header.record["values"] for packet in sent_packets(s, "share")]


def test_a_converged_start_is_frozen_and_no_longer_sent() -> None:
    s = Session(made(lambda_u=0.01, n_init=8), X, GROUPS)
    s.play_until(messages.Add)
    kept: dict[int, tuple[bytes, bytes]] = {}
    sizes = []
    while kind_of(s.open.tasks["r1c1"]) == messages.Add.kind:
        asked = packets.parse(s.open.tasks["r1c1"]).header.record["values"]["lanes"]
        s.play_round()
        words = packets.parse(s.received_messages[-1].payload).arrays["words"]
        assert len(words) == len(asked) * (100 * 4 + 4) + 1
        sizes.append(len(asked))
        known = memory(s)
        assert known.lanes == asked
        for lane in set(range(8)) - set(asked):
            own = lane_of(known.objects, lane), lane_of(known.items, lane)
            bits = own[0].tobytes(), own[1].tobytes()
            assert kept.setdefault(lane, bits) == bits
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) > 2
    taken = memory(s).n_iterations
    assert len(set(taken.tolist())) > 1
    assert taken.max() < s.params.max_iter
    assert len(sizes) == taken.max() + 1  # no iteration was asked for again
    assert (memory(s).moved <= s.params.tol).all()


def criterion(R: FloatArray, U: FloatArray, W: FloatArray, params: CoClustering) -> Any:
    """Return equation 1."""
    total = np.einsum("ic,jc,ij->", U, W, R)
    entropies = [
        fuzziness * sum(x * np.log(x) for x in array.flat if x > 0)
        for fuzziness, array in ((params.lambda_u, U), (params.lambda_w, W))
    ]
    return total - entropies[0] - entropies[1]


@pytest.mark.parametrize(
    ("lambda_u", "lambda_w"),
    [(0.001, 100.0), (0.05, 0.3), (0.01, 0.05), (1.0, 5.0), (0.1, 1e6)],
)
@pytest.mark.quick(3)
def test_the_criterion_of_every_start_follows_from_totals(
    lambda_u: float, lambda_w: float
) -> None:
    s = Session(made(lambda_u=lambda_u, lambda_w=lambda_w), DEGREES, GROUPS).follow()
    W = np.vstack([memory(s, slot).items for slot in s.data])
    for lane, found in enumerate(memory(s).criteria):
        U = lane_of(memory(s).objects, lane)
        direct = criterion(DEGREES[s.order], U, lane_of(W, lane), s.params)
        assert found == pytest.approx(direct, rel=1e-9)
    assert len({memory(s, slot).criteria.tobytes() for slot in s.data}) == 1


@pytest.mark.parametrize("seed", range(4))
def test_the_best_start_is_that_of_the_pooled_run(seed: int) -> None:
    block = np.arange(60) // 20
    likely = np.where(block[:, None] == block, 0.6, 0.1)
    R = (np.random.default_rng(seed).random((60, 60)) < likely).astype(np.float64)
    params = CoClustering(n_clusters=3, n_init=6, small_cohorts="allow")
    layout, data = sites(R, (20, 20, 20))
    run = simulation.run(params, layout, data, seed)
    order = run.orders["r1c1"]
    reference = pooled.run(params, R[order], run.trace)
    site_state = pooled.starts(params, len(R), run.trace)
    each = [pooled.run_from(params, csr_array(R[order]), U) for U in site_state]
    assert reference.criterion == pytest.approx(max(e.criterion for e in each))
    W = np.hstack([run.outcomes[slot].item_memberships for slot in layout.names])
    assert np.abs(W - reference.items.T).max() <= 1e-6
    for outcome in run.outcomes.values():
        assert np.abs(outcome.memberships[order] - reference.objects).max() <= 1e-6
        report = dict(outcome.report)
        won = each[report["start"]]
        (figures,) = outcome.figures
        assert figures.criterion == pytest.approx(reference.criterion, rel=1e-9)
        assert figures.n_iter == reference.n_iterations
        assert won.criterion == reference.criterion
        assert report["n_init"] == 6
        assert report["n_iterations"] == reference.n_iterations
        coefficient = np.square(reference.objects).sum() / len(R)
        assert figures.partition_coefficient == pytest.approx(coefficient)


@pytest.mark.parametrize(
    ("criteria", "best"),
    [
        ([3.0, 7.0, 5.0], 1),
        ([7.0, 7.0, 7.0], 0),
        ([5.0, 7.0 * (1 - 0.9e-9), 7.0], 1),
        ([5.0, 7.0 * (1 - 1.1e-9), 7.0], 2),
        ([-1e-17, -1e-17, 0.0], 2),
        ([-2e-17, -1e-17, -3e-17], 0),  # nothing occurs at all: rounding
    ],
)
def test_of_equal_criteria_the_lowest_start_wins(
    criteria: list[float], best: int
) -> None:
    s = Session(made(n_init=3, max_iter=1), X, GROUPS).follow()
    known = memory(s).model_copy(update={"criteria": np.array(criteria)})
    assert site_state.best_lane(known) == best


def test_a_criterion_is_sent_if_a_start_may_have_converged() -> None:
    """Its move may be at most the tolerance there, and a last digit more here."""
    params = made(tol=1e-6, max_iter=9)
    moved = 1e-6 + np.array([0.0, 0.9e-9, 1.1e-9, 1.0])
    found = site_state.have_converged(params, np.array([3, 3, 3, 9]), moved)
    assert found.tolist() == [True, True, False, True]
