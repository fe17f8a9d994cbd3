"""Moments pooled by blind masked sums equal those of numpy, and stay hidden."""

from functools import partial

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from support.attacks import looks_like_noise
from support.pooled_moments import ONE, pooled, prepare
from support.repeats import thorough
from support.tables import cut, cut_columns

from clustering_protocols.common.errors import InvalidArray, InvalidData
from clustering_protocols.common.limits import LARGEST_NUMBER as LARGEST
from clustering_protocols.engine import packets
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.numerics.moments import PooledMoments, measure_moments
from clustering_protocols.protocols.dc import DataCollaboration
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.shared_stages.statistics import magnitudes, moments
from clustering_protocols.shared_stages.sums import AddUp
from clustering_protocols.simulation import Session
from clustering_protocols.terms.terms import Layout, Slot


def check(found: PooledMoments, X: FloatArray, rtol: float = 1e-9) -> None:
    exact, varies = X.astype(np.longdouble), X.max(axis=0) > X.min(axis=0)
    mean = exact.mean(axis=0).astype(float)
    spread = np.where(varies, exact.std(axis=0), 0).astype(float)
    assert (found.deviations[~varies] == 0.0).all()
    np.testing.assert_allclose(found.spread, spread, rtol=rtol)
    within = np.abs(found.mean - mean) <= rtol * (np.abs(mean) + spread)
    assert within.all()
    assert found.n_rows == len(X)


kinds = st.sampled_from(["normal", "far", "skew", "integers", "constant", "zero"])
sizes = st.lists(st.integers(1, 40), min_size=3, max_size=6).filter(
    lambda s: sum(s) > 8
)


def column(kind: str, n: int, scale: float, rng: np.random.Generator) -> FloatArray:
    return {
        "normal": rng.normal(size=n),
        "far": rng.normal(1e6, 1.0, n),
        "skew": np.exp(3.0 * rng.normal(size=n)),
        "integers": rng.integers(-3, 3, n) + 0.0,
        "constant": np.full(n, 0.1),
        "zero": np.zeros(n),
    }[kind] * scale


@settings(max_examples=thorough(ci=25, nightly=300))
@given(
    parts=sizes,
    kinds=st.lists(kinds, min_size=1, max_size=4),
    exponent=st.integers(-6, 6),
    seed=st.integers(0, 2**32 - 1),
)
@example(parts=[1, 1, 9], kinds=["far", "constant", "zero"], exponent=0, seed=0)
def test_masked_moments_are_those_of_the_rows_together(
    parts: list[int], kinds: list[str], exponent: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    n, scale = sum(parts), 10.0**exponent
    X = np.stack([column(kind, n, scale, rng) for kind in kinds], axis=1)
    check(pooled(X, parts), X)


DRAWN = np.random.default_rng(0).normal(size=(3000, 1))
FAR: dict[str, FloatArray] = {
    **{f"{scale}": scale * DRAWN[:300] for scale in (1e-9, 1e-3, 1e6, 1e15, 1e18)},
    "an outlier": np.vstack([DRAWN, [[1e9]]]),
    "different constants": np.repeat([[0.1], [0.3], [0.5]], 10, axis=0),
    "the largest accepted": np.linspace(0.5, 1.0, 60)[:, None] * 2.0**61.99,
}


@pytest.mark.parametrize("which", FAR)
def test_small_and_large_values_keep_nine_digits(which: str) -> None:
    X = FAR[which]
    check(pooled(X, [len(X) // 3, len(X) // 3, len(X) - 2 * (len(X) // 3)]), X)


def test_moments_do_not_depend_on_how_rows_are_cut_or_ordered() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal([0.0, 1e6, -1e-3], [1.0, 1.0, 1e-5], (200, 3))
    cuts = ([66, 67, 67], [1, 1, 198], [20] * 10, [3, 150, 7, 40])
    found = [pooled(rng.permutation(X), cut) for cut in cuts]
    assert len({f.mean.tobytes() for f in found}) == 1
    assert len({f.deviations.tobytes() for f in found}) == 1


def ragged() -> Layout:
    """Three parties hold the first columns, two the second, one the third."""
    cells = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0)]
    return Layout(slots=tuple(Slot(name=f"p{r}{c}", row=r, column=c) for r, c in cells))


def test_column_groups_of_any_size_pool_their_moments() -> None:
    layout = ragged()
    rng = np.random.default_rng(1)
    rows = {0: 30, 1: 50, 2: 20}
    widths = {0: 2, 1: 3, 2: 4}
    data = {
        s.name: MatrixSource(
            rng.normal(5.0 * s.column, 1.0 + s.row, (rows[s.row], widths[s.column])),
            columns=[f"c{s.column}f{j}" for j in range(widths[s.column])],
            ids=[f"person {row:02d}" for row in range(rows[s.row])],
        )
        for s in layout.slots
    }
    session = Session(DataCollaboration(n_clusters=2), layout, data, seed=5)
    session.play_until(AddUp)
    session.play_round()
    assert "p02" not in session.open.tasks, "it is alone"
    prepare(session)
    for slot in layout.slots:
        group = layout.column_group(slot.column)
        X = np.concatenate([np.vstack(list(data[s].batches())) for s in group])
        own = data[slot.name]
        context = session.context(slot.name)
        check(moments.recall_moments(context, partial(measure_moments, own)), X)
    assert all(
        outcome.labels.size for outcome in session.run_to_end().outcomes.values()
    )


@pytest.mark.parametrize("value", [2.0**62, -(2.0**62), 1e300])
def test_too_large_values_are_refused_before_anything_is_sent(value: float) -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[25, 1] = value
    layout = Layout.lattice(3)
    data = cut(X, layout, columns=["age", "weight", "size"])
    session = Session(ONE, layout, data, seed=5)
    session.play_until(AddUp)
    before = len(session.received_messages)
    with pytest.raises(InvalidData, match="weight") as refused:
        session.play_round()
    assert "age" not in str(refused.value)
    assert len(session.received_messages) == before


def test_a_party_that_is_alone_may_have_larger_values() -> None:
    X = np.random.default_rng(0).normal(size=(60, 4))
    X[25, 0] = 2.0**70
    layout = Layout.lattice(1, 2)
    data = cut_columns(X, layout)
    session = prepare(Session(DataCollaboration(n_clusters=2), layout, data, seed=5))
    assert not any(
        sent.payload.count(b"add-up") for sent in session.received_messages
    ), "nobody shares a column"
    for slot, own in zip(layout.names, np.split(X, 2, axis=1), strict=True):
        measure = partial(measure_moments, data[slot])
        check(moments.recall_moments(session.context(slot), measure), own)


@pytest.mark.threat(75)
def test_totals_are_noise_to_the_analyst() -> None:
    """Shares and totals over many features: threat test 75's statistics."""
    layout = Layout.lattice(3)
    X = np.zeros((30, 800))
    session = Session(ONE, layout, cut(X, layout, [10, 10, 10]), seed=5)
    session.play_until(AddUp)
    session.play_round()
    share = packets.parse(session.received_messages[-1].payload).arrays["words"]
    total = packets.parse(session.open.tasks["r1c1"]).arrays["total"]
    looks_like_noise(share)
    looks_like_noise(total)
    assert not np.intersect1d(share, total).size


def test_counts_of_powers_are_packed_without_loss() -> None:
    values = np.ldexp(0.75, np.arange(-130, 63))
    names, n_members = [""] * len(values), 250
    own = moments.POWERS.count(values, names).reshape(len(values), -1)
    largest = moments.POWERS.largest_powers
    assert (largest(own.ravel()) == np.maximum(np.arange(-130, 63), -128)).all()
    # one member counted another power than all others, in each column
    total = ((n_members - 1) * own[:-1] + own[1:]).ravel()
    assert moments.POWERS.fits(total, n_members)
    assert (largest(total) == largest(own[1:].ravel())).all()
    for wrong in (1, -1, 1 << 56, -1 << 56, 1 << 24, 1 << 62):
        changed = total.copy()
        changed[-1] += wrong
        assert not moments.POWERS.fits(changed, n_members)
    assert not moments.POWERS.fits(total, n_members - 1)


@pytest.mark.parametrize("value", [0.0, 1e99, LARGEST, -LARGEST])
def test_numbers_whose_squares_add_up_are_taken(value: float) -> None:
    magnitudes.check_magnitudes("It", np.empty(0), np.array([[0.0, value]]))


@pytest.mark.parametrize(
    "value", [np.nextafter(LARGEST, np.inf), -1e300, np.inf, np.nan]
)
@pytest.mark.parametrize("place", [0, 1])
def test_larger_numbers_are_refused_wherever_they_stand(
    value: float, place: int
) -> None:
    arrays = [np.zeros(3), np.zeros((2, 2))]
    arrays[place].flat[-1] = value
    with pytest.raises(InvalidArray, match=r"It has numbers larger than 1e\+100"):
        magnitudes.check_magnitudes("It", *arrays)
