"""Of several starts, only the best continues, as if it had been the given start."""

from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from support.attacks import sent_packets

from clustering_protocols.common.errors import GuardRefused, ProtocolFailed
from clustering_protocols.protocols.llf import (
    LosslessFederated as Llf,
    messages,
    rows_party,
    rows_round,
)
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.shared_stages.starts.messages import LaneStarts, ProposedByAll
from clustering_protocols.shared_stages.sums import AddUp, SumTotals
from clustering_protocols.simulation import Session
from clustering_protocols.terms.sections import Evaluation
from clustering_protocols.terms.terms import Layout
from tests.protocols.llf.llf_sessions import (
    FALSE,
    FIRST,
    blobs,
    numbers_of,
    rows,
    three_parties,
)

LAYOUT = Layout.lattice(3)
FUZZY: dict[str, Any] = {"algorithm": "fuzzy_cmeans", "small_cohorts": "allow"}
INITS = ("careful", "random_party", "bounds")
both = pytest.mark.parametrize("more", [{}, FUZZY], ids=["cmeans", "fuzzy"])


def racing(
    X: FloatArray | None = None, runs: Evaluation | None = None, **params: Any
) -> Session:
    return three_parties(X, evaluation=runs, **{"n_init": 5, **params})


def lanes_of(s: Session) -> FloatArray:
    s.play_until(AddUp)
    s.play_round()
    return s.recall("r2c1", messages.RacingStarts).centroids


def objective(
    X: FloatArray, V: FloatArray, params: Llf, least: int
) -> tuple[float, FloatArray]:
    """Return the objective of a start after one update, and the updated centroids."""
    D = cdist(X, V, "sqeuclidean")
    if params.fuzzy:
        U = 1.0 / (D * (1.0 / D).sum(axis=1, keepdims=True))
        W = U**2
    else:
        W = np.eye(len(V))[D.argmin(axis=1)]
    weights = W.sum(axis=0)
    means = W.T @ X / np.maximum(weights, 1e-300)[:, None]
    after = np.where((weights >= least)[:, None], means, V)
    return float((W * cdist(X, after, "sqeuclidean")).sum()), after


@both
@pytest.mark.parametrize("init", INITS)
def test_the_start_of_least_value_after_one_update_goes_on(
    init: Any, more: dict[str, Any]
) -> None:
    s = racing(init=init, **more)
    lanes = lanes_of(s)
    assert len({V.tobytes() for V in lanes}) > 3
    params = s.session.params
    values = [
        objective(rows(240), V, params, params.least_rows_moved)[0] for V in lanes
    ]
    best = lanes[int(np.argmin(values))]
    s.play_until(messages.Update, 2)
    for slot in LAYOUT.names:
        kept = s.recall(slot, LaneStarts).centroids[0]
        assert np.array_equal(kept, best)
    assert len(set(np.round(values, 6))) > 1


@both
@pytest.mark.parametrize("init", INITS)
@pytest.mark.quick(2)
def test_it_goes_on_as_if_it_had_been_given(init: Any, more: dict[str, Any]) -> None:
    s = racing(init=init, **more)
    s.run_to_end()
    V = s.recall("r1c1", LaneStarts).centroids[0]
    start = tuple(tuple(map(float, row)) for row in V)
    alone = racing(init="given", initial_centroids=start, n_init=1, **more)
    alone.run_to_end()
    found, expected = (
        np.concatenate([o.labels for o in each.outcomes().values()])
        for each in (s, alone)
    )
    numbers = numbers_of(found, expected, len(V))  # given starts keep their numbers
    for slot, outcome in s.outcomes().items():
        other = alone.outcomes()[slot]
        taken = np.unique(found)  # clusters without rows have no number to compare
        assert np.array_equal(outcome.centroids[taken], other.centroids[numbers[taken]])
        assert set(map(bytes, outcome.centroids)) == set(map(bytes, other.centroids))
        assert numbers[outcome.labels].tobytes() == other.labels.tobytes()
        assert outcome.report == other.report


@pytest.mark.parametrize("init", INITS)
def test_nothing_is_kept_of_a_start_that_was_dropped(init: Any) -> None:
    s = racing(init=init)
    lanes = lanes_of(s)
    s.play_until(messages.Update)
    for slot in LAYOUT.names:
        kept = s.recall(slot, LaneStarts).centroids[0]
        stored = b"".join(s.memories[slot].entries.values())
        for V in lanes:
            there = V[0].tobytes() in stored
            assert there == np.array_equal(V, kept)
        assert s.recall(slot, messages.RacingStarts).centroids.shape == (0, 4, 2)
        assert s.recall(slot, LaneStarts).centroids.shape == (1, 4, 2)
        assert not s.recall(slot, SumTotals).totals.size
        proposed = s.memories[slot].get(ProposedByAll)
        assert proposed is None or not proposed.centroids.size


def test_the_analyst_reads_neither_starts_nor_their_sums() -> None:
    s = racing(init="random_party")
    lanes = lanes_of(s)
    s.run_to_end()
    stored = b"".join(s.stored)
    for V in lanes:
        assert V.tobytes() not in stored
    race = [packet.arrays["words"] for packet in sent_packets(s, "share")]
    assert [len(each) for each in race] == [5 * (4 * 3 + 1) + 1] * 3 + [0] * 3
    for share in race[:3]:  # noise: half of the bits are set
        assert abs(np.unpackbits(share.view(np.uint8)).mean() - 0.5) < 0.05


@both
@pytest.mark.quick(1)
def test_a_party_needs_rows_for_all_starts_of_a_round(more: dict[str, Any]) -> None:
    """Fuzzy, k 4, F 2: more than 6 rows for each start.

    The rows lie in groups: starts share clusters, and the audit of sums lets them pass.
    """
    for n_init, refused in ((13, False), (14, True)):
        s = racing(blobs(240, 2, 4), n_init=n_init, **more)  # 80 rows each
        s.play_until(AddUp)
        if refused and more:
            with pytest.raises(GuardRefused, match="84 rows"):
                s.answer("r1c1")
        else:
            s.answer("r1c1")


def take_from_others(S: FloatArray, n: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return counts with the same sum, in which two clusters lose rows of others."""
    taken = 2 * n + n // 3
    taken[0] = -taken[1:].sum()
    return S, n - taken


LIES: dict[str, tuple[Any, str]] = {
    **FALSE,
    "fewer rows than a party has": (take_from_others, "fewer rows of a cluster than"),
}


def turn_with(change: Any, s: Session) -> None:
    """Play a round in which one party changes its sums and counts."""
    honest = rows_party.local_sums

    def local_sums(here: rows_round.RowsRound, data: Any, V: FloatArray) -> Any:
        own = honest(here, data, V)
        return change(*own) if here.context.slot.name == "r2c1" else own

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_party, "local_sums", local_sums)
        s.play_round()


@pytest.mark.parametrize("lie", LIES)
def test_false_sums_of_starts_end_the_session(lie: str) -> None:
    change, why = LIES[lie]
    s = racing(n_clusters=3, n_init=2)
    s.play_until(AddUp)
    turn_with(change, s)
    with pytest.raises(ProtocolFailed, match=why):
        s.play_round()


def test_starts_of_two_runs_are_of_the_same_rows() -> None:
    s = racing(runs=Evaluation(n_clusters=(2, 3)), n_clusters=3, n_init=2)
    s.play_until(AddUp)
    s.play_until(messages.Update)
    s.play_until(AddUp)
    turn_with(lambda S, n: (S + FIRST[:, None] * S.sum(axis=0), n), s)
    with pytest.raises(ProtocolFailed, match="of other rows"):
        s.play_round()
