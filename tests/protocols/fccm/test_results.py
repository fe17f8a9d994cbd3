"""`fccm` finds what fuzzy co-clustering of the pooled matrix finds."""

import tracemalloc
from collections.abc import Iterator
from functools import partial
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse
from scipy.sparse import csr_array
from support.coclusters import Session, blocks, kind_of, sites
from support.repeats import thorough

from clustering_protocols import simulation
from clustering_protocols.common.errors import InvalidData
from clustering_protocols.engine import packets, signatures
from clustering_protocols.numerics import data_source as sources
from clustering_protocols.numerics.data_source import (
    MatrixSource,
    SparseSource,
    matrix,
    sparse_matrix,
)
from clustering_protocols.numerics.randomness import KeyedStream, public_stream
from clustering_protocols.protocols.fccm import (
    CoClustering,
    maths,
    messages,
    reference as pooled,
    site_state,
)
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.terms.terms import Layout

SEED = 5
CLOSE = 1e-6
GROUPS = (27, 24, 21, 18)
X = blocks()
made = partial(
    CoClustering, small_cohorts="allow", n_clusters=4, max_iter=12, tol=0.0, n_init=1
)


# Equations 2 and 3, dense


def fccm(
    X: FloatArray, U: FloatArray, params: CoClustering
) -> Iterator[tuple[FloatArray, FloatArray]]:
    while True:
        W = shares(U.T @ X / params.r_max / params.lambda_w, axis=1)
        U = shares(W @ X.T / params.r_max / params.lambda_u, axis=0).T
        yield U, W.T


def shares(exponents: FloatArray, axis: int) -> FloatArray:
    """Return exp(x) / Σ exp(x) along an axis."""
    powers = np.exp(exponents - exponents.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def start(stream: KeyedStream, n: int, k: int) -> FloatArray:
    drawn = stream.uniform(n, k)
    return drawn / drawn.sum(axis=1, keepdims=True)


def expected(session: Session, n: int) -> list[tuple[FloatArray, FloatArray]]:
    """Return the first n iterations from the session's U(0), with rows as sent."""
    stream = session.session.public_stream("fccm", "start", 0)
    U = start(stream, len(session.X), session.params.n_clusters)
    return list(islice(fccm(session.X[session.order], U, session.params), n))


def equal_after_every_iteration(session: Session) -> None:
    found = session.follow().found
    assert sorted(found) == list(range(1, max(found) + 1))
    for (U, W), (n, ours) in zip(
        expected(session, len(found)), sorted(found.items()), strict=True
    ):
        assert np.abs(ours[0] - U).max() <= CLOSE, f"objects, iteration {n}"
        assert np.abs(ours[1] - W).max() <= CLOSE, f"items, iteration {n}"


@pytest.mark.parametrize("n_iterations", [1, 2, 9, 40])
@pytest.mark.parametrize(
    "params", [{}, {"lambda_u": 0.1, "lambda_w": 2.0}, {"lambda_w": 0.05}]
)
def test_the_pooled_reference_is_equations_2_and_3(
    params: dict[str, float], n_iterations: int
) -> None:
    chosen = made(max_iter=n_iterations, tol=1e-9, **params)
    found = pooled.run(chosen, X, None)
    U = start(public_stream(0, "fccm", 0), *X.shape[:1], 4)
    after = list(islice(fccm(X, U, chosen), found.n_iterations))
    np.testing.assert_allclose(found.objects, after[-1][0], atol=1e-10)
    np.testing.assert_allclose(found.items, after[-1][1], atol=1e-10)
    moves = [np.abs(b[0] - a[0]).max() for a, b in pairwise([(U,), *after])]
    assert all(move > 1e-9 for move in moves[:-1])
    assert found.n_iterations == n_iterations or moves[-1] <= 1e-9
    U = after[-1][0]
    behind = U.max(axis=1, keepdims=True) - U
    lowest = (behind < 1e-10).argmax(axis=1)  # of equals
    assert pooled.cluster_pooled(chosen, X, None).tolist() == lowest.tolist()


def test_the_kernels_are_the_equations_where_numbers_are_extreme() -> None:
    """With exponents of 1e5 nothing overflows, and memberships still add up to 1."""
    rng = np.random.default_rng(0)
    sums = rng.random((7, 3))
    U = maths.object_memberships(sums, 1e-5)
    assert np.array_equal(U.argmax(axis=1), sums.argmax(axis=1))
    np.testing.assert_allclose(U.sum(axis=1), 1.0)


# Equal to the pooled result


@settings(max_examples=thorough(ci=20, nightly=500))
@given(
    widths=st.lists(st.integers(1, 6), min_size=3, max_size=7),
    n=st.integers(2, 40),
    k=st.integers(2, 4),
    r_max=st.sampled_from([0.01, 1.0, 300.0]),
    fuzziness=st.tuples(st.floats(0.02, 1.0), st.floats(1.0, 100.0)),
    density=st.floats(0.0, 1.0),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_co_occurrences_give_the_pooled_result(
    widths: list[int],
    n: int,
    k: int,
    r_max: float,
    fuzziness: tuple[float, float],
    density: float,
    seed: int,
) -> None:
    """The data have real values, empty objects and empty items, and several r_max."""
    rng = np.random.default_rng(seed)
    m = sum(widths)
    R = r_max * rng.random((n, m)) * (rng.random((n, m)) < density)
    params = made(
        n_clusters=k,
        lambda_u=fuzziness[0],
        lambda_w=fuzziness[1],
        r_max=r_max,
        max_iter=6,
    )
    equal_after_every_iteration(Session(params, R, widths))


# Crisp items: sums that are asked for again


@pytest.mark.thorough
@pytest.mark.parametrize("lambda_w", [0.01, 0.02, 0.05, 0.1, 0.3, 1.0])
@pytest.mark.quick(2)
def test_crisp_items_need_repeats_and_give_the_pooled_result(lambda_w: float) -> None:
    session = Session(made(lambda_w=lambda_w), X, GROUPS)
    equal_after_every_iteration(session)
    n_rounds = session.kinds().count("share") // len(session.data)
    assert n_rounds > len(session.found) + 1


# Sparse data


class Sparse(SparseSource):
    """Sparse data that fail if they are read as dense rows."""

    def batches(self) -> Iterator[FloatArray]:
        raise AssertionError("asked for dense rows")


def test_sparse_data_are_never_densified_and_give_the_same_bits() -> None:
    params = made()
    layout, dense = sites(X, GROUPS)
    thin = {
        slot: Sparse(sparse.coo_array(matrix(rows)), rows.columns, rows.ids)
        for slot, rows in dense.items()
    }
    expected, found = (
        simulation.run(params, layout, each, SEED) for each in (dense, thin)
    )
    for slot, outcome in found.outcomes.items():
        other = expected.outcomes[slot]
        assert outcome.labels.tobytes() == other.labels.tobytes()
        assert outcome.memberships.tobytes() == other.memberships.tobytes()
        assert outcome.item_memberships.tobytes() == other.item_memberships.tobytes()


def test_a_run_holds_much_less_than_a_dense_site() -> None:
    n, m = 4000, 3000
    layout = Layout.lattice(1, 3)
    rng = np.random.default_rng(0)
    data = {
        slot: Sparse(
            sparse.random_array((n, m), density=1e-3, rng=rng),
            ids=simulation.number_rows(n),
        )
        for slot in layout.names
    }
    params = made(n_clusters=2, max_iter=2)
    tracemalloc.start()
    simulation.run(params, layout, data, SEED)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < n * m * 8 / 5


def test_sparse_data_are_those_of_their_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sources, "BATCH_ROWS", 7)
    source = SparseSource(sparse.csr_array(X))
    pieces = list(source.batches())
    assert [len(piece) for piece in pieces] == [7] * 14 + [2]
    assert np.array_equal(np.concatenate(pieces), X)
    again = sparse_matrix(MatrixSource(X))
    assert isinstance(again, sparse.csr_array)
    assert np.array_equal(again.toarray(), X)
    assert sparse_matrix(source) is source.sparse


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_sparse_values_that_are_not_finite_are_refused(value: float) -> None:
    R = sparse.csr_array(([value], ([1], [2])), shape=(3, 3))
    with pytest.raises(InvalidData, match="missing or infinite"):
        SparseSource(R)


def test_integers_become_floats_and_duplicates_are_summed() -> None:
    twice = sparse.coo_array(([1, 2, 4], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    source = SparseSource(twice)
    assert source.sparse.dtype == np.float64
    assert source.sparse.nnz == 2
    assert source.sparse.toarray().tolist() == [[0.0, 3.0], [4.0, 0.0]]
    old = SparseSource(sparse.csc_matrix(np.eye(2, dtype=np.int64)))
    assert isinstance(old.sparse, sparse.csr_array)


# When it stops, and what everybody gets


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
def test_it_stops_once_no_object_moves_by_more_than_tol(tol: float) -> None:
    session = Session(made(tol=tol, max_iter=200, lambda_u=0.01), X, GROUPS).follow()
    n = len(session.found)
    start_ = start(session.session.public_stream("fccm", "start", 0), 100, 4)
    Us = [start_, *(U for U, _ in expected(session, n))]
    moves = [np.abs(b - a).max() for a, b in pairwise(Us)]
    assert all(move > tol for move in moves[:-1])
    assert moves[-1] <= tol
    assert session.summary().n_iterations == n < 200
    told = session.summary().tolerances
    np.testing.assert_allclose(told, moves, rtol=0.051, atol=1e-12)
    assert all(float(f"{move:.2g}") == move for move in told)


def test_progress_says_how_far_it_has_come() -> None:
    session = Session(made(max_iter=4), X, GROUPS)
    session.play_until(messages.Add)
    seen = []
    while session.open.stage != signatures.CLOSING:
        seen.append(dict(session.open.progress or {}))
        session.play_round()
    assert [each["updates"] for each in seen] == [0, 0, 1, 2, 3, 4]
    assert all(each["of_at_most"] == 4 for each in seen)
    session.run_to_end()
    assert seen[-1]["moved"] == session.summary().tolerances.tolist()


# Several starts: each gives the same result as alone, and the best one is returned

DEGREES = X * np.random.default_rng(3).random(X.shape)
several = partial(
    CoClustering, small_cohorts="allow", n_clusters=4, max_iter=60, n_init=4
)


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


@pytest.mark.parametrize("more", SETTINGS, ids=str)
@pytest.mark.quick(3)
def test_every_start_goes_as_it_would_alone(more: dict[str, Any]) -> None:
    s = Session(several(**more), DEGREES, GROUPS).follow()
    known = memory(s)
    W = np.vstack([memory(s, slot).items for slot in s.data])
    for lane in range(4):
        U, own = alone(s, lane, int(known.n_iterations[lane]))
        assert np.abs(lane_of(known.objects, lane) - U).max() <= CLOSE, lane
        assert np.abs(lane_of(W, lane) - own).max() <= CLOSE, lane


def test_a_converged_start_is_frozen_and_no_longer_sent() -> None:
    s = Session(several(lambda_u=0.01, n_init=8), X, GROUPS)
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
    s = Session(several(lambda_u=lambda_u, lambda_w=lambda_w), DEGREES, GROUPS).follow()
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
    s = Session(several(n_init=3, max_iter=1), X, GROUPS).follow()
    known = memory(s).model_copy(update={"criteria": np.array(criteria)})
    assert site_state.best_lane(known) == best


def test_a_criterion_is_sent_if_a_start_may_have_converged() -> None:
    """Rounding may put a move within the tolerance at the leader and beyond it here."""
    params = several(tol=1e-6, max_iter=9)
    moved = 1e-6 + np.array([0.0, 0.9e-9, 1.1e-9, 1.0])
    found = site_state.have_converged(params, np.array([3, 3, 3, 9]), moved)
    assert found.tolist() == [True, True, False, True]
