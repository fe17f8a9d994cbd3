"""What went wrong once with llf and pooled moments: noise, gaps and odd numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.lies import altered
from support.tables import cut, within

from clustering_protocols import engine, simulation
from clustering_protocols.common.errors import (
    CoterieError,
    InvalidData,
    InvalidParameters,
    ProtocolFailed,
)
from clustering_protocols.protocols.llf import LosslessFederated as Llf, messages
from clustering_protocols.secrecy.fixed_point import FixedPoint
from clustering_protocols.shared_stages.sums import AddUp
from clustering_protocols.simulation import Session
from clustering_protocols.terms.terms import Layout
from tests.protocols.llf.llf_sessions import (
    blobs,
    by_columns,
    columns_session,
    plus,
    session,
    start_of,
)

# the last total of the moments is confirmed by nobody


def test_a_last_total_of_moments_that_differs_ends_the_session() -> None:
    """Analyst tells one party another spread: it scales otherwise, silently."""
    layout = Layout.lattice(3)
    s = Session(Llf(n_clusters=3), layout, cut(blobs(120, 2), layout, [40] * 3), seed=5)
    s.until(AddUp)
    for _ in range(4):
        s.turn()
    lie = altered(s, "r2c1", lambda t: {"total": t.total + np.uint64(2**61)})
    with pytest.raises(CoterieError):
        s.to_the_end(told={"r2c1": lie})


# a party that no update asked has no start


@pytest.mark.parametrize("seed", [0, 3])
def test_a_party_that_no_update_asked_closes_with_the_others(seed: int) -> None:
    X = blobs(100, 2)
    params = Llf(
        n_clusters=2,
        init="given",
        initial_centroids=start_of(X, 2),
        participation=0.5,
        max_iter=2,
    )
    run = simulation.run(
        params, Layout.lattice(5), cut(X, Layout.lattice(5), [20] * 5), seed
    )
    assert len(run.outcomes) == 5


def test_a_party_that_was_away_for_every_update_reads_its_result() -> None:
    s = session(max_iter=2, tol=0.0)  # init given, quorum 3
    while isinstance(s.move, engine.Opened):
        away = "r4c1" in s.open.tasks and s.open.stage == "updates"
        s.turn(absent=["r4c1"] if away else [])
    assert s.outcomes()["r4c1"].labels.size == 40


# split columns: noise instead of distances is taken for distances


@pytest.mark.parametrize("algorithm", ["cmeans", "fuzzy_cmeans"])
def test_split_columns_notice_that_masks_did_not_cancel(algorithm: Any) -> None:
    s = columns_session(algorithm)
    name = "labels" if algorithm == "cmeans" else "memberships"

    def change(task: Any) -> dict[str, Any]:
        old = np.array(getattr(task, name))
        old[0] = (old[0] + 1) % 3 if algorithm == "cmeans" else old[0][::-1]
        return {name: old}

    with pytest.raises(CoterieError):
        s.to_the_end(told={"r1c2": altered(s, "r1c2", change)})


# messages that are not as declared end in IndexError and ValueError

SHAPES: dict[str, Any] = {
    "members empty": lambda _: {"members": []},
    "cohort too narrow": lambda _: {"cohorts": np.ones((1, 4), np.uint8)},
    "cohort too wide": lambda _: {"cohorts": np.ones((1, 6), np.uint8)},
    "fewer words": lambda t: {"totals": t.totals[:, :4].copy()},
    "no words": lambda t: {"totals": t.totals[:, :0].copy()},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_task_of_another_shape_is_a_problem_of_the_list(shape: str) -> None:
    s = session(quorum=None)
    s.until(messages.Update, 3)
    with pytest.raises(CoterieError):
        s.answer("r2c1", altered(s, "r2c1", SHAPES[shape]))


LAST_SHAPES: dict[str, Any] = {
    "members empty": lambda _: {"members": []},
    "fewer last words": lambda t: {"gathered": t.gathered[:5].copy()},
    "more last words": lambda t: {"gathered": np.tile(t.gathered, 2)},
}


@pytest.mark.parametrize("shape", LAST_SHAPES)
def test_a_last_task_of_another_shape_is_a_problem_of_the_list(shape: str) -> None:
    s = session(quorum=None)
    s.until(messages.ReportDigest)
    with pytest.raises(CoterieError):
        s.answer("r2c1", altered(s, "r2c1", LAST_SHAPES[shape]))


# the digest of the result leaves out the figures


@pytest.mark.parametrize("slot", ["r1c1", "r2c1"])
def test_a_lie_about_the_figures_ends_the_session(slot: str) -> None:
    s = session(quorum=None)
    s.until(messages.ReportDigest)
    lie = altered(s, slot, lambda t: {"gathered": plus(t.gathered, (3, 1 << 40))})
    with pytest.raises(ProtocolFailed):
        s.to_the_end(told={slot: lie})


# bounds near zero overflow the unit


def test_a_range_of_zero_alone_is_a_constant_column() -> None:
    X = blobs(90, 3).clip(-9, 9)
    X[:, 1] = 0.0
    params, layout = Llf(n_clusters=2, scaling="none"), Layout.lattice(3)
    data = cut(X, layout, [30] * 3)
    said = within([-10.0, 0.0, -10.0], [10.0, 0.0, 10.0], data, layout)
    run = simulation.run(params, layout, data, 1, dictionary=said)
    assert np.isfinite(run.outcomes["r1c1"].centroids).all()


@pytest.mark.parametrize("bound", [1e-300, 5e-324])
def test_the_unit_of_the_smallest_bounds_is_finite(bound: float) -> None:
    assert np.isfinite(FixedPoint.of(bound).unit).all()


# fewer distinct rows than clusters


# split columns, more clusters than rows: which error


def test_more_clusters_than_joint_rows_are_refused_by_that_name() -> None:
    X = blobs(20, 3)
    with pytest.raises((InvalidData, InvalidParameters), match="rows"):
        simulation.run(
            Llf(n_clusters=50), Layout.lattice(1, 3), by_columns(X, [1] * 3), 1
        )


# moments: deviations of accepted values exceed the powers; tiny values


# split columns, standard scaling and a start from a dictionary's bounds
