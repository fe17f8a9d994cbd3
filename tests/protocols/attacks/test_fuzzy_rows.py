"""Fuzzy sessions over rows, each within the bound on equations, that add up to the rows.

A session tells 2(T + 2)·k·(1 + 1/F) equations at most for each row of others.
No home counts them over sessions: after six of them one curious party has more equations
than unknowns, and solves for all rows of others.

Between two rounds a party knows the centroids before and after, and its own rows. Each
new centroid is a mean of all rows with weights that follow from the centroids before:
k·F equations a round in the n·F numbers of the others' rows.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import least_squares, linear_sum_assignment, nnls
from sklearn.datasets import load_iris
from support.verdicts import ATTACKED, RIGHT, Refused, Verdict, attacked, check

from clustering_protocols import simulation
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import CoterieError
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.llf import LosslessFederated, rows_round
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.terms.terms import Layout
from tests.protocols.attacks.honest_sessions import house_in, numbers, play

DEGREES = Refused(Problem.GUARD_REFUSED, "sums of memberships over these rows")
ALLOWED = {"choices": {"allow_given_start": True}}
VERDICTS: dict[int, Verdict] = {1: RIGHT, 4: DEGREES, 6: DEGREES}
"""By the number of sessions: whether one party reads all rows of the others."""
ROWS, WIDTH, K, MAX_ITER = 15, 2, 2, 3
ATTACKER = "r2c1"
Moves = list[tuple[FloatArray, FloatArray]]


def weighted(
    rows: FloatArray, before: FloatArray, after: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return what each row (n, F) adds to Σ μ² (x - v') of each round, and ∂/∂x.

    Arrays of shape (n, T, k, F) and (F, n, T, k, F); complex steps give the derivatives.
    """

    def parts(x: FloatArray) -> FloatArray:
        away = np.square(x[:, None, None, :] - before).sum(axis=3) + 1e-300
        degrees = (1 / away) / (1 / away).sum(axis=2, keepdims=True)
        added: FloatArray = np.square(degrees)[..., None] * (
            x[:, None, None, :] - after
        )
        return added

    slopes = []
    for feature in range(rows.shape[1]):
        moved = rows.astype(np.complex128)
        moved[:, feature] += 1e-20j
        slopes.append(parts(moved).imag / 1e-20)
    return parts(rows), np.array(slopes)


def solved(
    before: FloatArray, after: FloatArray, own: FloatArray, n: int, *, starts: int = 20
) -> FloatArray:
    """Return n rows (n, F) of others that explain how centroids moved, best of starts.

    before, after: float64 (T, k, F), of each round.
    """
    mine = weighted(own, before, after)[0].sum(axis=0)
    width = own.shape[1]
    missing = max(0, n * width - mine.size)  # the solver wants a square

    def residuals(flat: FloatArray) -> FloatArray:
        theirs = weighted(flat.reshape(n, width), before, after)[0]
        return np.append((theirs.sum(axis=0) + mine).ravel(), np.zeros(missing))

    def slopes(flat: FloatArray) -> FloatArray:
        found = weighted(flat.reshape(n, width), before, after)[1]
        jacobian = found.reshape(width, n, -1).transpose(2, 1, 0).reshape(-1, n * width)
        return np.vstack([jacobian, np.zeros((missing, n * width))])

    rng = np.random.default_rng(0)
    best = None
    for _ in range(starts):
        tight = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15, "max_nfev": 4000}
        guess = rng.normal(size=n * width)
        found = least_squares(residuals, guess, jac=slopes, method="lm", **tight)
        if best is None or found.cost < best.cost:
            best = found
        if best.cost < 1e-20:
            break
    assert best is not None
    rows: FloatArray = best.x.reshape(n, width)
    return rows


def n_met(guess: FloatArray, rows: FloatArray, within: float) -> int:
    """Return how many rows are guessed, if each guess is matched with one row."""
    away = np.abs(guess[:, None] - rows).max(axis=2)
    return int((away[linear_sum_assignment(away)] < within).sum())


@contextmanager
def moves_of(slot: str) -> Iterator[Moves]:
    moves: Moves = []
    honest = rows_round.RowsRound._move_centroids

    def move(self: Any, known: Any, total: Any, members: Any) -> Any:
        new = honest(self, known, total, members)
        if self.context.slot.name == slot:
            moves.append((np.array(known.centroids), np.array(new.centroids)))
        return new

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_round.RowsRound, "_move_centroids", move)
        yield moves


@pytest.mark.slow
def test_sessions_within_the_bound_add_up(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = load_iris().data[:, [1, 3]][rng.permutation(150)[: 3 * ROWS]]
    X = X + rng.normal(scale=0.02, size=X.shape)
    tables = [
        pd.DataFrame(part, columns=["a", "b"]).assign(
            id=[f"{number}-{row}" for row in range(ROWS)]
        )
        for number, part in enumerate(np.split(X, 3))
    ]
    S = (X - X.mean(axis=0)) / X.std(axis=0)
    first, own, third = np.split(S, 3)
    others = np.vstack([first, third])
    measured: dict[int, str | CoterieError] = {}
    with house_in(tmp_path) as house, moves_of(ATTACKER) as moves:
        for number in range(1, max(VERDICTS) + 1):
            drawn = np.random.default_rng(99 + number).normal(size=(K, WIDTH))
            start = X.mean(axis=0) + X.std(axis=0) * drawn * 1.5
            params = LosslessFederated(
                n_clusters=K,
                algorithm="fuzzy_cmeans",
                fuzzifier=2.0,
                max_iter=MAX_ITER,
                tol=0.0,
                init="given",
                initial_centroids=start.tolist(),
                publish="sizes",
            )
            outcome = play(
                house,
                f"s{number}",
                params,
                Layout.lattice(3),
                tables,
                ids="id",
                rules=dict.fromkeys(Layout.lattice(3).names, ALLOWED),
                dictionary=[numbers("ab", -2, 9, kind="number")],
            )
            if isinstance(outcome, CoterieError):
                measured |= dict.fromkeys(set(VERDICTS) - set(measured), outcome)
                break
            if number in VERDICTS:
                before, after = (np.array(part) for part in zip(*moves, strict=True))
                read = solved(before, after, own, len(others), starts=10)
                met = n_met(read, others, within=1e-3)
                measured[number] = attacked(met == len(others))
    for number, verdict in VERDICTS.items():
        check(measured[number], verdict)


OF_KINDS: dict[str, Verdict] = {
    "refuse": Refused(Problem.GUARD_REFUSED, "Columns repeat their values"),
    "allow": ATTACKED,
}
"""By ``small_cohorts``: whether a party finds how many rows of others are of each kind."""


@pytest.mark.threat(195)
@pytest.mark.parametrize(
    ("n", "terms"), [(90, "refuse"), (1300, "refuse"), (90, "allow")]
)
def test_totals_of_yes_and_no_count_the_rows_of_each_kind(n: int, terms: str) -> None:
    """Eight rounds are within the bound of real numbers, which would allow 36.

    More rows do not help: of six columns there are 64 kinds of rows.
    """
    rng = np.random.default_rng(0)
    chances = np.where(rng.random((3 * n, 1)) < 0.5, 0.3, 0.7)
    X = (rng.random((3 * n, 6)) < chances + np.tile([0.1, -0.1], 3)).astype(float)
    layout = Layout.lattice(3)
    ids = [f"P{row}" for row in range(n)]
    data = {
        slot: MatrixSource(part, [f"q{j}" for j in range(6)], ids)
        for slot, part in zip(layout.names, np.split(X, 3), strict=True)
    }
    params = LosslessFederated(
        n_clusters=2,
        algorithm="fuzzy_cmeans",
        fuzzifier=2.0,
        max_iter=8,
        tol=0.0,
        small_cohorts=terms,
    )
    if terms == "refuse":
        with pytest.raises(CoterieError) as refused:
            simulation.run(params, layout, data, seed=0)
        check(refused.value, OF_KINDS[terms])
        return
    with moves_of(ATTACKER) as moves:
        simulation.run(params, layout, data, seed=0)
    before, after = (np.array(part) for part in zip(*moves, strict=True))
    kinds = np.array(list(product((0.0, 1.0), repeat=6)))
    scaled, own = ((x - X.mean(axis=0)) / X.std(axis=0) for x in (kinds, X[n : 2 * n]))
    mine = weighted(own, before, after)[0].sum(axis=0).ravel()
    each = weighted(scaled, before, after)[0].reshape(len(kinds), -1).T
    counts = nnls(np.vstack([each, np.ones(len(kinds))]), np.append(-mine, 2 * n))[0]
    others = np.vstack([X[:n], X[2 * n :]])
    true = (others[:, None] == kinds).all(axis=2).sum(axis=0)
    check(attacked((np.rint(counts) == true).all()), OF_KINDS[terms])
