"""Spectral clustering of `dc` of more rows than a graph takes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.datasets import load_wine, make_circles

from clustering_protocols import simulation
from clustering_protocols.common import limits
from clustering_protocols.contract.sizing import Extent
from clustering_protocols.numerics import row_blocks
from clustering_protocols.numerics.scores import adjusted_rand
from clustering_protocols.protocols.dc import DataCollaboration, analyst, protocol
from clustering_protocols.terms.terms import Layout

SEED = 4
LAYOUT = Layout.lattice(2)
SPECTRAL = DataCollaboration(n_clusters=2, algorithm="spectral", dimensions="all")


@pytest.fixture
def few() -> Iterator[None]:
    """More than 1,000 rows are many, and 300 stand for them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "MANY_IN_A_GRAPH", 1_000)
        patch.setattr(limits, "N_REPRESENTATIVES", 300)
        yield


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("n", [1_000, 1_001])
def test_a_result_says_when_small_groups_of_rows_were_clustered(n: int) -> None:
    X, y = make_circles(n, factor=0.4, noise=0.05, random_state=0)
    parts = simulation.split(X, LAYOUT, SEED)
    run = simulation.run(SPECTRAL, parts.layout, parts.data, SEED)
    said = {outcome.report.get("approximation") for outcome in run.outcomes.values()}
    if n == 1_000:
        assert said == {None}
    else:
        assert said == {
            (
                "The 1,001 rows were clustered as 300 small groups; all rows of a group "
                "have one label."
            )
        }
    for name, outcome in run.outcomes.items():
        assert adjusted_rand(y[parts.held[name]], outcome.labels) == 1.0


@pytest.mark.unused_seam("draw")
def test_up_to_the_limit_nothing_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: object) -> None:
        raise AssertionError("rows were drawn")

    monkeypatch.setattr(analyst.Representatives, "draw", nothing)
    assert not SPECTRAL.samples_rows(limits.MANY_IN_A_GRAPH)
    assert SPECTRAL.samples_rows(limits.MANY_IN_A_GRAPH + 1)
    assert not DataCollaboration(n_clusters=2).samples_rows(10**9)
    parts = simulation.split(load_wine().data, LAYOUT, SEED)
    simulation.run(SPECTRAL, parts.layout, parts.data, SEED)


@pytest.mark.usefixtures("few")
def test_coordinates_are_those_of_a_rows_group() -> None:
    X, _ = make_circles(1_500, factor=0.4, noise=0.05, random_state=0)
    parts = simulation.split(X, LAYOUT, SEED)
    params = SPECTRAL.model_copy(update={"output": "coordinates"})
    run = simulation.run(params, parts.layout, parts.data, SEED)
    for outcome in run.outcomes.values():
        assert outcome.coordinates is not None
        assert outcome.centroids is not None
        away = outcome.coordinates[:, None, :] - outcome.centroids
        found = np.square(away).sum(axis=2).argmin(axis=1)
        assert np.array_equal(found, outcome.labels)
    assert run.summary.starts.max() < len(X)
    assert run.summary.starts.max() >= 300  # numbers of rows, not of groups


class Traced(simulation.Session):
    """Notes the most memory that a step of the analyst takes."""

    most = 0

    @contextmanager
    def clock(self, role: str) -> Iterator[None]:
        """Trace the analyst."""
        if role != simulation.ANALYST:
            yield
            return
        tracemalloc.start()
        yield
        self.most = max(self.most, tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()


@pytest.mark.usefixtures("few")
def test_a_step_stays_below_the_stated_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(row_blocks, "BLOCK_ITEMS", 1 << 16)
    n, width = 60_000, 40
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, width)) + 8.0 * rng.integers(2, size=n)[:, None]
    parts = simulation.split(X, LAYOUT, SEED)
    session = Traced(SPECTRAL, parts.layout, parts.data, seed=SEED)
    session.to_the_end()
    extent = Extent(rows=n, features=width, layout=LAYOUT)
    of_blocks = 10 * 8 * row_blocks.BLOCK_ITEMS
    assert session.most < protocol.DcSizes().memory_bytes(SPECTRAL, extent) + of_blocks
    assert session.most < 8 * n * width
