"""A curious party solves the totals of all updates for rows of others, unless bounded."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import least_squares, nnls
from support.verdicts import ATTACKED, Refused, Verdict, attacked, check

from clustering_protocols import simulation
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import CoterieError
from clustering_protocols.contract import row_history
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.mixture import Mixture, bound, model as em, roles
from clustering_protocols.protocols.mixture.model import Densities, Shape
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.terms.preparation import Preparation
from clustering_protocols.terms.schema import Field, Schema
from clustering_protocols.terms.terms import Layout

LAYOUT = Layout.lattice(3)
ATTACKER = "r2c1"
Read = list[tuple[Shape, Densities, FloatArray]]
"""Of each update the components before, and the sums of all others."""


@contextmanager
def totals_of(slot: str) -> Iterator[Read]:
    """Collect the components and the sums of others that a party's software reads."""
    read: Read = []
    now: list[str] = []
    follow, honest = roles.RoundView.apply_total, em.check_total

    def follow_at(place: Any, *args: Any) -> Any:
        now[:] = [place.context.slot.name]
        return follow(place, *args)

    def keep(shape: Any, model: Any, sums: Any, own: Any, *more: Any) -> None:
        honest(shape, model, sums, own, *more)
        if now == [slot]:
            densities = Densities.of(shape, model)
            read.append((shape, densities, sums.vector - own.vector))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(roles.RoundView, "apply_total", follow_at)
        patch.setattr(em, "check_total", keep)
        yield read


def tables(sizes: tuple[int, int, int], X: FloatArray) -> dict[str, MatrixSource]:
    names = [f"q{j}" for j in range(X.shape[1])]
    parts = np.split(X, np.cumsum(sizes)[:-1])
    return {
        slot: MatrixSource(part, names, [f"{slot}-{i}" for i in range(len(part))])
        for slot, part in zip(LAYOUT.names, parts, strict=True)
    }


def two_clouds(n: int) -> FloatArray:
    rng = np.random.default_rng(1)
    return rng.normal(size=(n, 2)) + 2.5 * rng.integers(2, size=(n, 1))


def sums(read: Read, rows: FloatArray) -> FloatArray:
    """Return the totals of others if these were their rows."""
    none = np.empty((len(rows), 0))
    return np.concatenate(
        [densities.compute_sums(rows, none) for _, densities, _ in read]
    )


VERDICTS: dict[str, Verdict] = {
    "as it is": Refused(Problem.PROTOCOL_FAILED, "from one update"),
    "without the bound": ATTACKED,
}
"""Whether a party finds the rows of others from the totals of eight updates."""


def read_totals(
    software: str,
    sizes: tuple[int, int, int],
    X: FloatArray,
    patch: pytest.MonkeyPatch,
    **sections: Any,
) -> Read | None:
    """Return what the attacker reads; None if the session is refused as expected."""
    params = Mixture(n_clusters=2, max_iter=8, tol=0.0)
    if software == "as it is":
        with pytest.raises(CoterieError) as refused:
            simulation.run(params, LAYOUT, tables(sizes, X), seed=0, **sections)
        check(refused.value, VERDICTS[software])
        return None
    patch.setattr(row_history, "MARGIN", 1e-6)
    with totals_of(ATTACKER) as read:
        simulation.run(params, LAYOUT, tables(sizes, X), seed=0, **sections)
    return read


@pytest.mark.threat(232)
@pytest.mark.parametrize("software", VERDICTS)
def test_totals_are_solved_for_rows_where_nothing_bounds_them(
    software: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = two_clouds(48)
    read = read_totals(software, (4, 40, 4), X, monkeypatch)
    if read is None:
        return
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    others = np.vstack([Z[:4], Z[44:]])
    seen = np.concatenate([total for _, _, total in read])
    rng = np.random.default_rng(0)
    best = None
    for _ in range(20):
        guess = rng.normal(size=others.size)
        found = least_squares(
            lambda flat: sums(read, flat.reshape(-1, 2)) - seen,
            guess,
            method="lm",
            xtol=1e-14,
            ftol=1e-14,
        )
        if best is None or found.cost < best.cost:
            best = found
        if best.cost < 1e-18:
            break
    assert best is not None
    rows = best.x.reshape(-1, 2)
    away = np.linalg.norm(rows[:, None] - others, axis=2).min(axis=0)
    check(attacked((away < 1e-4).all()), VERDICTS[software])


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_totals_within_the_bound_leave_half_of_the_rows_unknown(kind: Any) -> None:
    """The rank of all totals in the others' numbers is at most the counted one."""
    X = two_clouds(150)
    params = Mixture(n_clusters=2, covariance_type=kind, tol=0.0)
    with totals_of(ATTACKER) as read:
        run = simulation.run(params, LAYOUT, tables((50, 50, 50), X), seed=0)
    shape, n_others = read[0][0], 100
    assert len(read) == bound.limit_updates(run.trace.session)
    assert 2 * (len(read) + 1) * shape.n_equations <= n_others * 2
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    others = np.vstack([Z[:50], Z[100:]])
    slopes = np.empty((len(read) * shape.n_words, others.size))
    for place in range(others.size):
        moved = np.zeros(others.size)
        moved[place] = 1e-5
        shift = moved.reshape(others.shape)
        slopes[:, place] = sums(read, others + shift) - sums(read, others - shift)
    rank = np.linalg.matrix_rank(slopes / 2e-5, tol=1e-6)
    assert rank <= len(read) * shape.n_equations <= others.size / 2


ITEMS = Schema(fields=tuple(Field(name=f"q{j}", type="boolean") for j in range(6)))


@pytest.mark.threat(195)
@pytest.mark.parametrize("software", VERDICTS)
def test_totals_of_yes_and_no_count_the_rows_of_each_pattern(
    software: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    chances = np.where(rng.random((270, 1)) < 0.5, 0.3, 0.7)
    X = (rng.random((270, 6)) < chances + np.tile([0.1, -0.1], 3)).astype(float)
    sections = {"dictionary": [ITEMS], "preparation": [Preparation()]}
    read = read_totals(software, (90, 90, 90), X, monkeypatch, **sections)
    if read is None:
        return
    kinds = np.array(list(product((0.0, 1.0), repeat=6)))
    columns = read[0][0].columns
    none = np.empty((1, 0))
    each = np.array(
        [
            np.concatenate(
                [densities.compute_sums(none, levels[None]) for _, densities, _ in read]
            )
            for levels in columns.to_levels(kinds)
        ]
    ).T
    seen = np.concatenate([total for _, _, total in read])
    counts = nnls(each, seen)[0]
    others = np.vstack([X[:90], X[180:]])
    true = (others[:, None] == kinds).all(axis=2).sum(axis=0)
    check(attacked((np.rint(counts) == true).all()), VERDICTS[software])
