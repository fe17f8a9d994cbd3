"""The mathematics of `dc` beside numpy, scipy and the paper's own formulas."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats
from scipy.spatial.distance import pdist
from support.tables import Pieces

from clustering_protocols import simulation
from clustering_protocols.common.errors import ProtocolFailed
from clustering_protocols.engine import packets
from clustering_protocols.numerics.blocks import ONE_THREAD, LocalEngine
from clustering_protocols.numerics.data_source import DataSource, MatrixSource
from clustering_protocols.numerics.moments import measure_moments
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.protocols.dc import (
    Anchor,
    DataCollaboration,
    analyst,
    anchors,
    common_space,
    maths,
    messages,
)
from clustering_protocols.protocols.dc.common_space import Cells, CommonSpace
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.terms.preparation import Ranges
from clustering_protocols.terms.schema import Schema
from clustering_protocols.terms.terms import Layout

LAYOUT = Layout.lattice(2, 2)
TRUTH = np.arange(90) % 3
CENTRES = 15.0 * np.random.default_rng(1).normal(size=(3, 6))
X = CENTRES[TRUTH] + np.random.default_rng(0).normal(size=(90, 6))
PARTS = simulation.split(X, LAYOUT, seed=2)


def run(
    params: DataCollaboration,
    data: Mapping[str, DataSource] = PARTS.data,
    layout: Layout = LAYOUT,
    dictionary: Sequence[Schema] | None = None,
) -> simulation.SimulationResult:
    return simulation.run(params, layout, data, seed=5, dictionary=dictionary)


# The party's reduction

batch_sizes = st.lists(st.integers(1, 9), min_size=1, max_size=5)


@given(sizes=batch_sizes, width=st.integers(1, 6), seed=st.integers(0, 2**32 - 1))
def test_principal_axes_do_not_depend_on_the_batches(
    sizes: list[int], width: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    scale = rng.uniform(0.5, 2.0, width)
    rows = rng.normal(3.0, scale, (sum(sizes), width))
    mean = rows.mean(axis=0)
    source = Pieces(rows, sizes)
    R = maths.triangular_factor(source, mean, scale)
    shift = float(np.linalg.norm(mean / scale))
    axes, rank = maths.principal_axes(R, len(rows), shift)
    centred = (rows - mean) / scale
    values = np.linalg.svd(centred, compute_uv=False)
    assert len(R) <= width
    np.testing.assert_allclose(R.T @ R, centred.T @ centred, atol=1e-9)
    assert rank == np.linalg.matrix_rank(centred, tol=1e-9)
    spreads = np.linalg.norm(centred @ axes, axis=0)
    np.testing.assert_allclose(spreads[: len(values)], values, atol=1e-9)
    np.testing.assert_allclose(axes.T @ axes, np.eye(axes.shape[1]), atol=1e-12)


@pytest.mark.parametrize(
    ("rank", "n_rows", "width"),
    [(5, 100, 4), (2, 100, 1), (1, 100, 1), (0, 100, 1), (5, 4, 3), (1, 1, 1)],
)
def test_one_dimension_fewer_is_sent_but_at_least_one(
    rank: int, n_rows: int, width: int
) -> None:
    assert maths.reduced_width(rank, n_rows) == width


# The analyst's maps

ISOMETRIC = DataCollaboration(n_clusters=2)


def full_width(layout: Layout, seed: int) -> tuple[Any, list[Cells], Any]:
    """Return rows, projections that lose nothing (turned and shifted), and anchors.

    Rows are a list over row groups, anchors a list over column groups.
    """
    rng = np.random.default_rng(seed)
    pooled = rng.normal(2.0, 3.0, (40, 6))
    parts = simulation.split(pooled, layout, seed)
    drawn = [rng.normal(size=(60, len(columns))) for columns in parts.columns]
    row_groups: list[dict[int, messages.Projections]] = [{} for _ in parts.rows]
    for slot in layout.slots:
        rows = pooled[np.ix_(parts.rows[slot.row], parts.columns[slot.column])]
        Q = KeyedStream(rng.bytes(32)).rotation(rows.shape[1])
        shift = rng.normal(size=rows.shape[1])
        row_groups[slot.row][slot.column] = messages.Projections(
            rows=rows @ Q + shift, anchors=drawn[slot.column] @ Q + shift
        )
    rows = [
        pooled[
            np.ix_(numbers, np.concatenate([parts.columns[c] for c in sorted(cells)]))
        ]
        for numbers, cells in zip(parts.rows, row_groups, strict=True)
    ]
    return rows, list(row_groups), drawn


def mapped(
    params: DataCollaboration, row_groups: list[Cells], widths: Any
) -> FloatArray:
    maps = analyst.fit_maps(params, row_groups, widths)
    return CommonSpace.of(row_groups, maps).load()


@pytest.mark.parametrize("cells", [(1, 1), (3, 1), (1, 3), (2, 2), (3, 2)])
def test_full_width_projections_keep_all_distances(cells: tuple[int, int]) -> None:
    rows, row_groups, drawn = full_width(Layout.lattice(*cells), seed=sum(cells))
    Z = mapped(ISOMETRIC, row_groups, [block.shape[1] for block in drawn])
    assert Z.shape == (40, 6)
    np.testing.assert_allclose(pdist(Z), pdist(np.vstack(rows)), rtol=1e-9)


def test_rows_without_a_column_group_lie_at_the_anchor_mean() -> None:
    layout = Layout(slots=Layout.lattice(3, 2).slots[:-1])
    rows, row_groups, drawn = full_width(layout, seed=8)
    Z = mapped(ISOMETRIC, row_groups, [block.shape[1] for block in drawn])
    complete = sum(map(len, rows[:2]))
    np.testing.assert_allclose(
        pdist(Z[:complete]), pdist(np.vstack(rows[:2])), rtol=1e-9
    )
    np.testing.assert_allclose(pdist(Z[complete:]), pdist(rows[2]), rtol=1e-9)
    placed = [*rows[:2], np.hstack([rows[2], np.tile(drawn[1].mean(axis=0), (13, 1))])]
    np.testing.assert_allclose(pdist(Z), pdist(np.vstack(placed)), rtol=1e-9)


def narrow_blocks(widths: Sequence[int], seed: int = 3) -> list[FloatArray]:
    """Return different reductions of the same 60 anchors of five features."""
    rng = np.random.default_rng(seed)
    drawn = rng.normal(5.0, 2.0, (60, 5))
    return [drawn @ rng.normal(size=(5, w)) + rng.normal(size=w) for w in widths]


def target(blocks: list[FloatArray], n_features: int) -> FloatArray:
    """Return U_1 Σ_1 of the centred blocks, each weighted by 1/√c."""
    centred = np.hstack([block - block.mean(axis=0) for block in blocks])
    U, values, _ = np.linalg.svd(centred / np.sqrt(len(blocks)), full_matrices=False)
    kept = min(int((values > 1e-9 * values[0]).sum()), n_features)
    return U[:, :kept] * values[:kept]


@pytest.mark.parametrize(
    ("widths", "n_features"), [((4,), 5), ((4, 3), 5), ((4, 2, 3), 5), ((4, 4), 3)]
)
def test_isometric_maps_are_the_least_squares_solution(
    widths: Sequence[int], n_features: int
) -> None:
    blocks = narrow_blocks(widths)
    T = target(blocks, n_features)
    maps = common_space.isometric_maps(blocks, n_features)
    for block, found in zip(blocks, maps, strict=True):
        A = np.hstack([block, np.ones((60, 1))])
        expected = np.linalg.lstsq(A, T, rcond=None)[0]
        solution = np.vstack([found.G, found.g])
        assert_equal_up_to_signs(A @ solution, A @ expected)
        assert_equal_up_to_signs(solution, expected)


@pytest.mark.parametrize("n_rows", [1, 7, 60, 1000])
def test_a_factor_folded_over_blocks_is_that_of_the_whole(
    monkeypatch: pytest.MonkeyPatch, n_rows: int
) -> None:
    rng = np.random.default_rng(2)
    Q, _ = np.linalg.qr(rng.normal(size=(200, 10)))
    spread = np.logspace(0, -8, 10)  # a Gram matrix loses the last three
    W = Q * spread @ np.linalg.qr(rng.normal(size=(10, 10)))[0]
    monkeypatch.setattr(maths, "_LEAST_ROWS", n_rows)
    columns = np.split(W, [3, 4], axis=1)
    R = maths.factor_columns(columns, ONE_THREAD)
    values = np.linalg.svd(R, compute_uv=False)
    np.testing.assert_allclose(values, spread, rtol=1e-6)
    np.testing.assert_allclose(R.T @ R, W.T @ W, atol=1e-14)
    for n_threads in (2, 3):
        again = maths.factor_columns(columns, LocalEngine(n_threads))
        assert again.tobytes() == R.tobytes()


def test_anchors_that_are_all_constant_end_the_session() -> None:
    blocks = [np.ones((10, 2)), np.full((10, 1), 3.0)]
    with pytest.raises(ProtocolFailed, match="constant"):
        common_space.isometric_maps(blocks, 3)


def test_the_orthonormal_target_gives_the_formulas_of_the_paper() -> None:
    """Equations 18 to 20, with the pseudo-inverse that they write."""
    rng = np.random.default_rng(4)
    row_groups: list[Cells] = [
        {
            column: messages.Projections(
                rows=rng.normal(size=(7, w)), anchors=rng.normal(size=(30, w))
            )
            for column, w in enumerate(widths)
        }
        for widths in ((2, 3), (3, 1), (2, 2))
    ]
    params = DataCollaboration(n_clusters=2, target="orthonormal")
    found = mapped(params, row_groups, [3, 3])

    def beside(blocks: list[FloatArray]) -> FloatArray:
        return np.hstack([*blocks, np.ones((len(blocks[0]), 1))])

    stacked = [beside([c.anchors for c in cells.values()]) for cells in row_groups]
    U, _, _ = np.linalg.svd(np.hstack(stacked))
    U_1 = U[:, :4]  # the smallest width of the three row groups
    expected = [
        beside([c.rows for c in cells.values()]) @ (np.linalg.pinv(A) @ U_1)
        for cells, A in zip(row_groups, stacked, strict=True)
    ]
    assert_equal_up_to_signs(found, np.vstack(expected))


def assert_equal_up_to_signs(found: FloatArray, expected: FloatArray) -> None:
    assert found.shape == expected.shape
    signs = np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found * signs, expected, atol=1e-9)


# Anchors


def test_gaussian_anchors_have_the_moments_of_each_feature() -> None:
    rows = np.random.default_rng(0).uniform(
        [0.0, 1e6, 5.0], [1.0, 1e6 + 9, 5.1], (99, 3)
    )
    params = DataCollaboration(n_clusters=1)
    drawn = anchors.draw(
        params, 5000, measure_moments(MatrixSource(rows)), KeyedStream(bytes(32))
    )
    assert drawn.shape == (5000, 3)
    standardised = (drawn - rows.mean(axis=0)) / rows.std(axis=0)
    assert stats.kstest(standardised, "norm", axis=0).pvalue.min() > 0.001
    assert np.abs(np.corrcoef(standardised.T) - np.eye(3)).max() < 0.05


def test_uniform_anchors_fill_the_range_of_each_feature() -> None:
    rows = np.random.default_rng(0).normal([0.0, 1e6], [1.0, 3.0], (99, 2))
    low, high = rows.min(axis=0), rows.max(axis=0)
    drawn = anchors.uniform(Ranges(low, high), 5000, KeyedStream(bytes(32)))
    placed = (drawn - low) / (high - low)
    assert stats.kstest(placed, "uniform", axis=0).pvalue.min() > 0.01
    assert np.abs(np.corrcoef(placed.T)[0, 1]) < 0.05


@pytest.mark.parametrize(
    ("params", "n_features", "n_anchors"),
    [
        ({}, 250, 500),
        ({}, 1000, 1001),
        ({"anchor": Anchor(n_rows=70)}, 6, 70),
        # correlated by chance: twice as many
        ({"anchor": Anchor(kind="rotated")}, 1000, 2000),
        ({"target": "orthonormal"}, 1000, 2000),
    ],
)
def test_the_number_of_anchors_follows_terms_or_features(
    params: dict[str, Any], n_features: int, n_anchors: int
) -> None:
    chosen = DataCollaboration(n_clusters=1, **params)
    assert chosen.count_anchors(n_features) == n_anchors


def test_as_many_orthogonal_anchors_as_needed_map_as_ten_times_as_many() -> None:
    """Four reductions of eight columns to seven or six: the same distances."""
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(40, 8))
    reductions = [np.linalg.qr(rng.normal(size=(8, w)))[0] for w in (7, 7, 6, 6)]
    stream = KeyedStream(bytes(32))

    def distances(n_rows: int) -> FloatArray:
        drawn = np.sqrt(n_rows) * stream.orthogonal_columns(n_rows, 8)
        np.testing.assert_allclose(drawn.T @ drawn, n_rows * np.eye(8), atol=1e-9)
        np.testing.assert_allclose(drawn.sum(axis=0), 0, atol=1e-9)
        maps = common_space.isometric_maps([drawn @ F for F in reductions], 8)
        parts = zip(np.array_split(rows, 4), reductions, maps, strict=True)
        return pdist(np.vstack([X @ F @ g.G + g.g for X, F, g in parts]))

    np.testing.assert_allclose(distances(9), distances(90), rtol=1e-9)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[FloatArray]:
    """Return the anchors of all parties, in the order in which they are drawn."""
    made: list[FloatArray] = []
    draw = anchors.draw
    monkeypatch.setattr(
        anchors, "draw", lambda *given: made.append(draw(*given)) or made[-1]
    )
    return made


def test_anchors_are_equal_within_a_column_group_alone(drawn: list[FloatArray]) -> None:
    run(DataCollaboration(n_clusters=3))
    r1c1, r1c2, r2c1, r2c2 = drawn
    assert np.array_equal(r1c1, r2c1)
    assert np.array_equal(r1c2, r2c2)
    for slot, anchor_rows in ((0, r1c1), (1, r1c2)):
        own = X[:, PARTS.columns[slot]]
        standardised = (anchor_rows - own.mean(axis=0)) / own.std(axis=0)
        assert stats.kstest(standardised, "norm", axis=0).pvalue.min() > 0.001
    # were both groups to share a stream, equal places would hold equal draws
    ranks = [stats.rankdata(anchor_rows[:, 0]) for anchor_rows in (r1c1, r1c2)]
    assert abs(stats.pearsonr(*ranks).statistic) < 0.15


def test_no_anchor_is_sent_as_it_is(drawn: list[FloatArray]) -> None:
    simulated = run(DataCollaboration(n_clusters=3, scaling="none"))
    sent = [
        array.ravel()
        for message in simulated.sent
        for array in packets.parse(message.payload).arrays.values()
        if array.dtype == np.float64
    ]
    made = np.concatenate([array.ravel() for array in drawn])
    assert not np.isin(np.concatenate(sent), made).any()


# Sessions


def test_ranges_are_declared_for_uniform_anchors_alone() -> None:
    with pytest.raises(ValueError, match="is for uniform anchors"):
        Anchor(ranges="declared")


# What is sent


def sent_projections(simulated: simulation.SimulationResult) -> dict[str, Any]:
    return {
        message.sender: packet.arrays
        for message in simulated.sent
        for packet in [packets.parse(message.payload)]
        if packet.header.record["kind"] == "projections"
    }


def test_a_party_sends_rotated_components_without_the_last() -> None:
    simulated = run(DataCollaboration(n_clusters=3, scaling="center"))
    for slot in LAYOUT.slots:
        rows = X[np.ix_(PARTS.rows[slot.row], PARTS.columns[slot.column])]
        U, values, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
        components = (U[:, :2] * values[:2])[simulated.orders[slot.name]]
        found = sent_projections(simulated)[slot.name]["rows"]
        np.testing.assert_allclose(pdist(found), pdist(components), rtol=1e-9)
        alike = np.abs(np.corrcoef(found.T, components.T)[:2, 2:])
        assert alike.max() < 0.9999, "components themselves would name their directions"


def test_every_party_and_session_turns_by_a_rotation_of_its_own() -> None:
    params = DataCollaboration(n_clusters=3, scaling="none")
    data = dict.fromkeys(("r1c1", "r2c1"), PARTS.data["r1c1"])
    first, second = (
        simulation.run(params, Layout.lattice(2), data, seed=5, session=session)
        for session in ("s", "t")
    )
    gathered = [*sent_projections(first).values(), *sent_projections(second).values()]
    undone = [  # the orders differ: compare the rows in the party's own order
        sent["rows"][np.argsort(order)]
        for sent, order in zip(
            gathered, [*first.orders.values(), *second.orders.values()], strict=True
        )
    ]
    for one, other in combinations(undone, 2):
        np.testing.assert_allclose(pdist(one), pdist(other), rtol=1e-9)
        assert not np.allclose(one, other)


# What the analyst refuses


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"anchor": {"n_rows": 6}}, "anchor.n_rows is 6; 6 features need at least 7"),
        ({"n_clusters": 91}, "n_clusters is 91; there are 90 rows"),
    ],
)
def test_parameters_that_the_data_do_not_fit_end_the_session(
    params: dict[str, Any], said: str
) -> None:
    wanted = DataCollaboration.model_validate({"n_clusters": 3, **params})
    with pytest.raises(ProtocolFailed, match=said):
        run(wanted)


# Dimensions that the data do not have


def dependent(mean: float) -> FloatArray:
    """Return rows with five dimensions in six columns."""
    rows = X + mean
    rows[:, 5] = rows[:, 0] + rows[:, 1]
    return rows


def few(mean: float) -> FloatArray:
    """Return twelve rows of thirty columns, which span eleven dimensions."""
    return np.random.default_rng(0).normal(mean, 1.0, size=(12, 30))


@pytest.mark.parametrize(
    ("scaling", "rows_of", "rank"),
    [(name, dependent, 5) for name in ("shared", "center", "local", "none")]
    + [("shared", few, 11)],
)
@pytest.mark.parametrize("mean", [0.0, 3.0, 1e3, 1e6])
def test_what_rounding_leaves_of_a_dependence_is_no_dimension(
    scaling: Any, rows_of: Any, rank: int, mean: float
) -> None:
    """Otherwise a party would leave out rounding errors instead of a dimension."""
    data = {"r1c1": MatrixSource(rows_of(mean))}
    params = DataCollaboration(n_clusters=2, scaling=scaling)
    report = run(params, data, Layout.lattice(1)).outcomes["r1c1"].report
    found = report["dimensions of the data"], report["dimensions sent"]
    assert found == (rank, rank - 1)
