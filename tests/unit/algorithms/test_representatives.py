"""Representatives are means of groups, with the same bits for any blocks and threads."""

from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from clustering_protocols.algorithms import lloyd
from clustering_protocols.algorithms.representatives import Representatives
from clustering_protocols.numerics import row_blocks
from clustering_protocols.numerics.blocks import LocalEngine


def drawn(X: Any, most: int, **others: Any) -> Representatives:
    rng = np.random.default_rng(3)
    return Representatives.draw(row_blocks.as_row_blocks(X), most, rng, **others)


def test_a_representative_is_the_mean_of_its_nearest_rows() -> None:
    X = np.random.default_rng(0).normal(size=(700, 5))
    some = drawn(X, 40)
    assert np.array_equal(some.drawn, np.unique(some.drawn))
    assert np.array_equal(some.nearest, cdist(X, X[some.drawn]).argmin(axis=1))
    means = [X[some.nearest == each].mean(axis=0) for each in range(40)]
    assert np.allclose(some.V, means, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("items", [40, 999])
def test_the_same_bits_in_any_blocks_and_on_any_threads(
    monkeypatch: pytest.MonkeyPatch, threads: int, items: int
) -> None:
    X = np.random.default_rng(1).normal(size=(600, 4)) * [1, 1e3, 1e-6, 1]
    whole = drawn(X, 50)
    monkeypatch.setattr(lloyd, "WORTH_A_THREAD", 0)
    monkeypatch.setattr(row_blocks, "BLOCK_ITEMS", items)
    cut = drawn(X, 50, engine=LocalEngine(threads))
    for name in ("drawn", "V", "nearest"):
        assert getattr(whole, name).tobytes() == getattr(cut, name).tobytes()


def test_equal_rows_share_one_representative() -> None:
    X = np.repeat(np.eye(3), 30, axis=0)
    some = drawn(X, 12)
    assert np.array_equal(some.V, X[some.drawn])
    assert len(np.unique(some.nearest)) == 3
    assert np.array_equal(some.V[some.nearest], X)
