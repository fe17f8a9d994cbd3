"""Blocks of rows give the same bits however rows are cut, and on any engine."""

import pickle
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.datasets import make_blobs

from clustering_protocols import engine, simulation
from clustering_protocols.algorithms import lloyd
from clustering_protocols.algorithms.kmeans import draw_starts, kmeans
from clustering_protocols.common import limits
from clustering_protocols.common.errors import InvalidArray
from clustering_protocols.contract import Params
from clustering_protocols.numerics import row_blocks
from clustering_protocols.numerics.blocks import LocalEngine
from clustering_protocols.numerics.row_blocks import ArrayRows, RowBlocks
from clustering_protocols.protocols.dc import (
    DataCollaboration,
    analyst,
    maths,
    messages,
)
from clustering_protocols.protocols.dc.common_space import Cells, CommonSpace
from clustering_protocols.protocols.omnifc import OmniFC
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.quality.rows import figures_of_clustering
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.shared_stages.statistics import magnitudes
from clustering_protocols.simulation import Session
from clustering_protocols.terms.terms import Layout

THREADS = [1, 2, 3]


@pytest.mark.parametrize("n_threads", THREADS)
@pytest.mark.parametrize("n_blocks", [0, 1, 2, 40])
def test_results_come_in_the_order_of_the_blocks(n_threads: int, n_blocks: int) -> None:
    late = threading.Event()

    def kernel(block: int) -> int:
        if block == 0 and n_threads > 1 and n_blocks > 1:
            assert late.wait(30), "the others continue while the first one works"
        late.set()
        return block * block

    found = list(LocalEngine(n_threads).map(kernel, iter(range(n_blocks))))
    assert found == [block * block for block in range(n_blocks)]


@pytest.mark.parametrize("n_threads", THREADS)
def test_few_blocks_are_held_at_a_time(n_threads: int) -> None:
    taken = 0

    def blocks() -> Iterator[int]:
        nonlocal taken
        for block in range(100):
            taken += 1
            yield block

    results = LocalEngine(n_threads).map(lambda block: block, blocks())
    for n_results, _ in enumerate(results, start=1):
        assert taken - n_results <= n_threads + 1


def test_threads_serve_again() -> None:
    engine_, workers = LocalEngine(2), set()
    together = threading.Barrier(2)

    def kernel(_: int) -> None:
        together.wait(30)  # both at once, or never
        workers.add(threading.get_ident())

    for _ in range(3):
        list(engine_.map(kernel, range(2)))
    assert len(workers) == 2


@pytest.mark.parametrize("n_threads", THREADS)
def test_what_a_kernel_raises_comes_out(n_threads: int) -> None:
    def kernel(block: int) -> float:
        return 1 / (block - 3)

    with pytest.raises(ZeroDivisionError):
        list(LocalEngine(n_threads).map(kernel, range(9)))


ANALYSTS: dict[str, tuple[Params, Layout]] = {
    "dc": (DataCollaboration(n_clusters=4, n_init=2), Layout.lattice(2, 2)),
    "dc, orthonormal": (
        DataCollaboration(n_clusters=4, n_init=2, target="orthonormal"),
        Layout.lattice(2, 2),
    ),
    "pqmds": (
        ProductQuantisation(n_clusters=4, n_init=2, sub_dim=2, codebook_size=30),
        Layout.lattice(1, 2),
    ),
    "omnifc": (
        OmniFC(n_clusters=4, algorithm="kmeans", distances="landmarks", noise=1),
        Layout.lattice(5),
    ),
}


@pytest.mark.parametrize("name", ANALYSTS)
def test_threads_do_not_change_the_bytes_of_a_result(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    params, layout = ANALYSTS[name]
    X, _ = make_blobs(600, 8, centers=4, cluster_std=4.0, random_state=0)
    monkeypatch.setattr(lloyd, "WORTH_A_THREAD", 0)
    monkeypatch.setattr(limits, "MANY_ROWS", 500)
    monkeypatch.setattr(row_blocks, "BLOCK_ITEMS", 700)
    monkeypatch.setattr(maths, "_LEAST_ROWS", 64)
    kept = []
    for n_threads in THREADS:
        data = simulation.split(X, layout, 0).data
        engine_ = LocalEngine(n_threads)
        session = Session(params, layout, data, seed=3, runs_on=engine_)
        session.run_to_end()
        closed = [
            *session.final_step.results.values(),
            session.final_step.summary or b"",
        ]
        read = [engine.read_result(session.agreement, each) for each in closed]
        kept.append([record.encode() for record in read])
    assert kept[0] == kept[1] == kept[2]


B = TypeVar("B")
R = TypeVar("R")


def common_space(sizes: Iterable[int]) -> CommonSpace:
    """Return row groups of two column groups; every third one lacks the first."""
    rng = np.random.default_rng(0)
    groups: list[Cells] = [
        {
            column: messages.Projections(
                rows=rng.normal(size=(size, width))
                + 5.0 * rng.integers(4, size=(size, 1)),
                anchors=rng.normal(size=(30, width)),
            )
            for column, width in enumerate((3, 2))
            if column or number % 3 != 2
        }
        for number, size in enumerate(sizes)
    ]
    maps = analyst.fit_maps(DataCollaboration(n_clusters=3), groups, [4, 3])
    return CommonSpace.of(groups, maps)


sizes_of_groups = st.lists(st.integers(1, 40), min_size=1, max_size=6)


@given(sizes_of_groups, st.integers(1, 300), st.data())
def test_a_row_has_the_same_bits_in_any_block_and_alone(
    sizes: list[int], items: int, data: Any
) -> None:
    X_hat = common_space(sizes)
    expected, n = X_hat.load(), sum(sizes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_blocks, "BLOCK_ITEMS", items)
        found = list(X_hat.blocks())
    most = max(items // X_hat.shape[1], 1)
    assert [block.rows.shape[0] for block in found[:-1]] == [most] * (len(found) - 1)
    assert np.cumsum([0, *(block.rows.shape[0] for block in found)])[:-1].tolist() == [
        block.span.start for block in found
    ]
    assert np.vstack([block.load() for block in found]).tobytes() == expected.tobytes()
    some = np.array(data.draw(st.lists(st.integers(0, n - 1))), dtype=np.int64)
    assert X_hat.take(some).tobytes() == expected[some].tobytes()


@given(st.integers(1, 60), st.integers(1, 200))
def test_arrays_side_by_side_are_the_array_that_they_are(n: int, items: int) -> None:
    X = np.random.default_rng(n).normal(size=(n, 6))
    rows = ArrayRows(*(np.ascontiguousarray(X[:, i : i + 2]) for i in (0, 2, 4)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_blocks, "BLOCK_ITEMS", items)
        assert np.array_equal(np.vstack([b.load() for b in rows.blocks()]), X)
        assert np.array_equal(rows.load(), X)
    assert np.array_equal(rows.take(np.array([n - 1, 0])), X[[n - 1, 0]])


class Elsewhere:
    def __init__(self) -> None:
        self.bound = 0

    def map(self, kernel: Callable[[B], R], blocks: Iterable[B]) -> Iterator[R]:
        sent = pickle.dumps(kernel)
        self.bound = max(self.bound, len(sent))
        packed = [pickle.dumps(block) for block in blocks]
        done = [pickle.loads(sent)(pickle.loads(each)) for each in reversed(packed)]
        return reversed(done)


def found_in(rows: FloatArray | RowBlocks, engine: Any, k: int = 4) -> list[bytes]:
    """Return starts, labels, centroids and inertia, as bytes."""
    starts = draw_starts(rows, k, 2, np.random.default_rng(5), engine)
    found = kmeans(rows, starts, 50, engine)
    inertia = np.float64(found.inertia)
    return [each.tobytes() for each in (starts, found.labels, found.centroids, inertia)]


ENGINES = {
    "1 thread": LocalEngine(1),
    "2 threads": LocalEngine(2),
    "3 threads": LocalEngine(3),
    "elsewhere": Elsewhere(),
}


@pytest.fixture
def shared_by_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lloyd, "WORTH_A_THREAD", 0)
    monkeypatch.setattr(limits, "MANY_ROWS", 100)


@pytest.mark.usefixtures("shared_by_threads")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("items", [1, 301, 4000, 1 << 20])
@pytest.mark.parametrize("sizes", [(130, 1, 300, 70), (90,)], ids=["many", "few"])
def test_k_means_of_blocks_equals_k_means_of_the_array(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], items: int, engine: str
) -> None:
    if items == 1:
        sizes = tuple(size // 5 + 1 for size in sizes)
    X_hat = common_space(sizes)
    expected = found_in(X_hat.load(), LocalEngine(1))
    monkeypatch.setattr(row_blocks, "BLOCK_ITEMS", items)
    assert found_in(X_hat, ENGINES[engine]) == expected


@pytest.mark.usefixtures("shared_by_threads")
@pytest.mark.parametrize("items", [35, 4000])
def test_figures_of_blocks_are_those_of_the_array_on_any_engine(
    monkeypatch: pytest.MonkeyPatch, items: int
) -> None:
    X_hat = common_space((130, 1, 300))
    found = kmeans(X_hat, np.array([[0, 50, 200]]), 50)
    expected = figures_of_clustering(X_hat.load(), found)
    monkeypatch.setattr(row_blocks, "BLOCK_ITEMS", items)
    told = [figures_of_clustering(X_hat, found, engine) for engine in ENGINES.values()]
    assert len({each.model_dump_json() for each in told}) == 1
    known = {
        name: value for name, value in expected.values.items() if value is not None
    }
    assert len(known) >= 6
    assert {name: told[0].values[name] for name in known} == pytest.approx(
        known, rel=1e-12
    )


@pytest.mark.usefixtures("shared_by_threads")
def test_kernels_bind_little_that_grows_with_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(row_blocks, "BLOCK_ITEMS", 1000)
    engine, bound = Elsewhere(), []
    for n in (500, 2000):
        X_hat = common_space((n, n // 2))
        found_in(X_hat, engine, k=2)
        found = kmeans(X_hat, np.array([[0, 1]]), 5, engine)
        figures_of_clustering(X_hat, found, engine)
        magnitudes.check_block_magnitudes("Rows", X_hat, engine)
        bound.append(engine.bound)
    assert bound[1] < bound[0] + 2000
    assert bound[1] < 8000


@pytest.mark.parametrize("wrong", [2e100, -2e100, np.inf, np.nan])
@pytest.mark.parametrize("place", [0, 33, 59])
def test_images_that_cannot_be_squared_are_refused(
    monkeypatch: pytest.MonkeyPatch, wrong: float, place: int
) -> None:
    monkeypatch.setattr(row_blocks, "BLOCK_ITEMS", 20)
    X = np.ones((60, 2))
    magnitudes.check_block_magnitudes("Rows", ArrayRows(X, X), LocalEngine(2))
    X[place, 1] = wrong
    with pytest.raises(InvalidArray, match="larger than 1e"):
        magnitudes.check_block_magnitudes("Rows", ArrayRows(X, X), LocalEngine(2))
