"""Kernels over blocks: the same bits however many of them are worked on at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from clustering_protocols import engine, simulation
from clustering_protocols.algorithms import lloyd
from clustering_protocols.common import limits
from clustering_protocols.contract import Params
from clustering_protocols.numerics import row_blocks
from clustering_protocols.numerics.blocks import LocalEngine
from clustering_protocols.numerics.randomness import KeyedStream
from clustering_protocols.protocols.dc import DataCollaboration, maths
from clustering_protocols.protocols.omnifc import OmniFC, maths as omnifc
from clustering_protocols.protocols.pqmds import ProductQuantisation
from clustering_protocols.secrecy import field
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
    for given, _ in enumerate(results, start=1):
        assert taken - given <= n_threads + 1


def test_who_asks_works_too_and_threads_serve_again() -> None:
    engine_, workers = LocalEngine(2), set()
    together = threading.Barrier(2)

    def kernel(_: int) -> None:
        together.wait(30)  # both at once, or never
        workers.add(threading.get_ident())

    for _ in range(3):
        list(engine_.map(kernel, range(2)))
    assert threading.get_ident() in workers
    assert len(workers) == 2


@pytest.mark.parametrize("n_threads", THREADS)
def test_an_engine_may_be_asked_again_while_it_works(n_threads: int) -> None:
    engine_ = LocalEngine(n_threads)

    def kernel(block: int) -> int:
        return sum(engine_.map(lambda inner: block * inner, range(10)))

    assert list(engine_.map(kernel, range(20))) == [45 * block for block in range(20)]


@pytest.mark.parametrize("n_threads", THREADS)
def test_what_a_kernel_raises_comes_out(n_threads: int) -> None:
    def kernel(block: int) -> float:
        return 1 / (block - 3)

    with pytest.raises(ZeroDivisionError):
        list(LocalEngine(n_threads).map(kernel, range(9)))


@pytest.mark.parametrize("n_threads", THREADS)
def test_distances_between_shares_have_the_same_bits(
    monkeypatch: pytest.MonkeyPatch, n_threads: int
) -> None:
    Z = field.draw(KeyedStream(bytes(32)), 300 * 5).reshape(300, 5)
    whole = omnifc.field_distances(Z)
    monkeypatch.setattr(omnifc, "_PAIRS", 1000)
    assert len(list(omnifc._stripes(300, 300))) > 9
    found = omnifc.field_distances(Z, LocalEngine(n_threads))
    np.testing.assert_array_equal(found, whole)


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
        session.to_the_end()
        closed = [
            *session.final_step.results.values(),
            session.final_step.summary or b"",
        ]
        read = [engine.read_result(session.agreement, each) for each in closed]
        kept.append([record.encode() for record in read])
    assert kept[0] == kept[1] == kept[2]
