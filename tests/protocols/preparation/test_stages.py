"""Data sources, pooled statistics, group secrets and alignment, run in sessions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from support.tables import Pieces

from clustering_protocols import simulation
from clustering_protocols.common.errors import (
    ColumnsNotAligned,
    CoterieError,
    InvalidData,
    ProtocolFailed,
    RowsNotAligned,
)
from clustering_protocols.contract import Finish, Params, PeerMessage
from clustering_protocols.contract.protocol import Relay
from clustering_protocols.engine import packets
from clustering_protocols.numerics.data_source import (
    BATCH_ROWS,
    DataSource,
    MatrixSource,
    matrix,
)
from clustering_protocols.numerics.moments import PooledMoments, measure_moments
from clustering_protocols.protocols.dc import Anchor, DataCollaboration
from clustering_protocols.shared_stages.alignment.digests import RowOrder
from clustering_protocols.shared_stages.secrets import ColumnSecret, RowSecret
from clustering_protocols.shared_stages.statistics import ranges
from clustering_protocols.shared_stages.statistics.ranges import OwnRanges, PooledRanges
from clustering_protocols.shared_stages.sums import RowsSummed
from clustering_protocols.simulation import Session
from clustering_protocols.terms.terms import Layout

LAYOUT = Layout.lattice(2, 2)
CENTRES = 20.0 * np.array([[1.0, 0, 0, 1, 0], [0, 1.0, 0, 0, -1], [0, 0, 1.0, -1, 1]])
TRUTH = np.arange(60) % 3
X = CENTRES[TRUTH] + np.random.default_rng(0).normal(size=(60, 5))
PARTS = simulation.split(X, LAYOUT, seed=1)


def ended_session(params: Params, data: Mapping[str, DataSource]) -> Session:
    whole = Session(params, LAYOUT, data, seed=7, session="s")
    whole.run_to_end()
    return whole


def recalled(session: Session, kind: Any) -> dict[str, Any]:
    return {slot: session.recall(slot, kind) for slot in LAYOUT.names}


@pytest.fixture(scope="module")
def session() -> Session:
    return ended_session(DataCollaboration(n_clusters=3), PARTS.data)


# Data sources


@pytest.mark.parametrize(
    "options",
    [
        {"columns": ["a", "a"]},
        {"columns": ["a"]},
        {"columns": ["a", "b", "b"]},
        {"ids": ["1", "2"]},
        {"ids": ["1", "2", "3", "3"]},
    ],
)
def test_names_and_ids_must_be_as_many_as_columns_and_rows(
    options: dict[str, list[str]],
) -> None:
    with pytest.raises(InvalidData):
        MatrixSource(np.zeros((3, 2)), **options)


@pytest.mark.parametrize("shape", [(3,), (0, 2), (3, 0), (1, 1, 1)])
def test_data_without_rows_or_columns_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidData, match="matrix"):
        MatrixSource(np.zeros(shape))


def test_missing_values_are_refused_by_column_without_row_ids() -> None:
    rows = [[0.0, np.nan], [1.0, np.inf], [2.0, 0.5]]
    with pytest.raises(InvalidData, match=r"2 rows .*, in weight") as refused:
        MatrixSource(rows, ["age", "weight"], ["smith", "miller", "baker"])
    assert not any(word in str(refused.value) for word in ("age", "smith", "miller"))


def test_batches_are_all_rows_in_order() -> None:
    rows = np.arange(2.0 * (BATCH_ROWS + 3)).reshape(-1, 2)
    source = MatrixSource(rows)
    assert [len(batch) for batch in source.batches()] == [BATCH_ROWS, 3]
    assert np.array_equal(matrix(source), rows)
    assert np.array_equal(matrix(source), rows), "a source is read any number of times"


# Moments and ranges


@given(
    parts=st.lists(st.integers(1, 30), min_size=1, max_size=16),
    seed=st.integers(0, 2**32 - 1),
)
def test_moments_do_not_depend_on_the_batches(parts: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    together = rng.normal([0.0, 1e6, -3.0], [1.0, 1.0, 1e-3], (sum(parts), 3))
    found = measure_moments(Pieces(together, parts))
    exact = together.astype(np.longdouble)
    assert found.n_rows == len(together)
    np.testing.assert_allclose(found.mean, exact.mean(axis=0).astype(float), rtol=1e-12)
    spread = exact.std(axis=0).astype(float)
    np.testing.assert_allclose(found.spread, spread, rtol=1e-9, atol=1e-15)
    assert np.array_equal(found.minimum, together.min(axis=0))
    assert np.array_equal(found.maximum, together.max(axis=0))


@pytest.mark.parametrize("constant", [0.1, 1 / 3, -1e6 - 0.1, 0.0])
@pytest.mark.parametrize("n_rows", [7, 40, 1000])
def test_a_constant_feature_has_this_mean_and_no_spread_at_all(
    constant: float, n_rows: int
) -> None:
    found = measure_moments(MatrixSource(np.full((n_rows, 1), constant)))
    assert (found.mean[0], found.deviations[0]) == (constant, 0.0)


UNIFORM = Anchor(kind="uniform")


@pytest.mark.parametrize(
    ("anchor", "scaling", "kinds"),
    [
        (Anchor(), "none", {PooledMoments}),
        (UNIFORM, "none", {PooledRanges}),
        (UNIFORM, "shared", {PooledMoments, PooledRanges}),
    ],
)
def test_a_column_group_pools_only_what_its_terms_need(
    anchor: Anchor, scaling: Any, kinds: set[Any]
) -> None:
    params = DataCollaboration(n_clusters=3, scaling=scaling, anchor=anchor)
    ended = ended_session(params, PARTS.data)
    for slot in LAYOUT.slots:
        own = X[:, PARTS.columns[slot.column]]
        memory = ended.memories[slot.name]
        found = {kind: memory.get(kind) for kind in (PooledMoments, PooledRanges)}
        assert {kind for kind, record in found.items() if record} == kinds
        assert (memory.get(RowsSummed) is not None) == (PooledMoments in kinds)
        if moments := memory.get(PooledMoments):
            assert moments.n_rows == len(X)
            np.testing.assert_allclose(moments.mean, own.mean(axis=0))
            np.testing.assert_allclose(moments.spread, own.std(axis=0))
        if extremes := memory.get(PooledRanges):
            assert np.array_equal(extremes.minimum, own.min(axis=0))
            assert np.array_equal(extremes.maximum, own.max(axis=0))


def test_a_leader_pools_exactly_its_column_group(session: Session) -> None:
    own = OwnRanges(minimum=np.zeros(3), maximum=np.ones(3))
    view = session.context("r1c1")
    view = replace(view, memory=view.memory.remember([own]))
    role = ranges.RangesParty()
    wider = own.replace(maximum=np.full(3, 2.0))
    came = {slot: PeerMessage(peer=slot, content=wider) for slot in ("r2c1", "r2c2")}
    (found,) = role.receive(view, [came["r2c1"]])
    pooled = PooledRanges.narrow(found)
    assert (pooled.minimum[0], pooled.maximum[0]) == (0, 2)
    for others in ([], [came["r2c2"]], [*came.values()]):
        with pytest.raises(ProtocolFailed, match="missing"):
            role.receive(view, others)


# Secrets of groups


def test_only_members_of_a_group_share_its_secret(session: Session) -> None:
    rows = {slot: kept.secret for slot, kept in recalled(session, RowSecret).items()}
    columns = {s: kept.secret for s, kept in recalled(session, ColumnSecret).items()}
    assert rows["r1c1"] == rows["r1c2"]
    assert rows["r2c1"] == rows["r2c2"]
    assert columns["r1c1"] == columns["r2c1"]
    assert columns["r1c2"] == columns["r2c2"]
    assert len({*rows.values(), *columns.values()}) == 4
    assert all(len(bytes.fromhex(secret)) == 32 for secret in rows.values())


# Alignment


def with_changes(slot: str, **changes: Any) -> dict[str, MatrixSource]:
    source = PARTS.data[slot]
    kept = {"columns": source.columns, "ids": source.ids}
    return {**PARTS.data, slot: MatrixSource(matrix(source), **(kept | changes))}


def swapped(names: Sequence[str] | None) -> list[str]:
    first, second, *others = names or ()
    return [second, first, *others]


def renamed(names: Sequence[str] | None) -> list[str]:
    _, *others = names or ()
    return ["somebody else", *others]


@pytest.mark.threat(20)
@pytest.mark.parametrize(
    ("changes", "problem", "named", "other"),
    [
        (
            {"ids": renamed(PARTS.data["r2c2"].ids)},
            RowsNotAligned,
            "r2c1, r2c2",
            "'r2c1' and this party have different rows",
        ),
        (
            {"columns": swapped(PARTS.data["r2c2"].columns)},
            ColumnsNotAligned,
            "r1c2, r2c2",
            "'r1c2' and this party have different columns",
        ),
    ],
)
def test_members_stop_an_analyst_that_hides_a_difference(
    monkeypatch: pytest.MonkeyPatch,
    changes: Mapping[str, Any],
    problem: type[CoterieError],
    named: str,
    other: str,
) -> None:
    data = with_changes("r2c2", **changes)
    with pytest.raises(problem) as ended:
        simulation.run(DataCollaboration(n_clusters=3), LAYOUT, data, seed=1)
    assert ended.value.detail == f"Compare the inputs of {named}.", "and no id"
    monkeypatch.setattr(Relay, "step", lambda *_: Finish())
    whole = Session(DataCollaboration(n_clusters=3), LAYOUT, data, seed=1)
    with pytest.raises(ProtocolFailed, match=other):
        whole.run_to_end()
    after = [
        packets.parse(sent.payload).address.stage for sent in whole.received_messages
    ]
    assert "upload" not in after


def test_equal_ids_of_two_groups_have_different_digests() -> None:
    """Two row groups with the same ids are not seen to hold the same rows."""
    ids = [f"id-{number}" for number in range(30)]
    data = {s: MatrixSource(matrix(d), d.columns, ids) for s, d in PARTS.data.items()}
    run = simulation.run(DataCollaboration(n_clusters=3), LAYOUT, data, seed=1)
    digests = [
        values
        for sent in run.sent
        for header in [packets.parse(sent.payload).header.record]
        if header["kind"] == "digests"
        for values in [header["values"]["rows"]]
    ]
    assert len(digests) == 4
    assert len(set(digests)) == 2


def test_rows_travel_in_one_secret_order_per_row_group(session: Session) -> None:
    orders = {slot: kept.order for slot, kept in recalled(session, RowOrder).items()}
    for slot in LAYOUT.names:
        assert np.array_equal(np.sort(orders[slot]), np.arange(30))
        assert not np.array_equal(orders[slot], np.arange(30))
    assert np.array_equal(orders["r1c1"], orders["r1c2"])
    assert np.array_equal(orders["r2c1"], orders["r2c2"])
    assert not np.array_equal(orders["r1c1"], orders["r2c1"])
