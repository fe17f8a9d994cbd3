"""Fuzzy sessions over rows, each within the bound on equations, that add up to the rows.

A session tells 2(T + n_init + 1)·k·(1 + 1/F) equations at most for each row of others.
No home counts them over sessions: after six of them one curious party has more equations
than unknowns, and solves for all rows of others.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import nnls
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
from tests.protocols.llf.solving import n_met, solved, weighted

DEGREES = Refused(Problem.GUARD_REFUSED, "sums of memberships over these rows")
ALLOWED = {"choices": {"allow_given_start": True}}
VERDICTS: dict[int, Verdict] = {1: RIGHT, 4: DEGREES, 6: DEGREES}
"""By the number of sessions: whether one party reads all rows of the others."""
ROWS, WIDTH, K, MAX_ITER = 15, 2, 2, 3
ATTACKER = "r2c1"
Moves = list[tuple[FloatArray, FloatArray]]


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
    "refuse": Refused(Problem.GUARD_REFUSED, "6 columns repeat their values"),
    "allow": ATTACKED,
}
"""By ``small_cohorts``: whether a party finds how many rows of others are of each kind."""


@pytest.mark.threat(195)
@pytest.mark.parametrize("terms", OF_KINDS)
def test_totals_of_yes_and_no_count_the_rows_of_each_kind(terms: str) -> None:
    """Eight rounds are within the bound of real numbers, which would allow 36."""
    rng = np.random.default_rng(0)
    chances = np.where(rng.random((270, 1)) < 0.5, 0.3, 0.7)
    X = (rng.random((270, 6)) < chances + np.tile([0.1, -0.1], 3)).astype(float)
    layout = Layout.lattice(3)
    ids = [f"P{row}" for row in range(90)]
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
    scaled, own = ((x - X.mean(axis=0)) / X.std(axis=0) for x in (kinds, X[90:180]))
    mine = weighted(own, before, after)[0].sum(axis=0).ravel()
    each = weighted(scaled, before, after)[0].reshape(len(kinds), -1).T
    counts = nnls(np.vstack([each, np.ones(len(kinds))]), np.append(-mine, 180))[0]
    others = np.vstack([X[:90], X[180:]])
    true = (others[:, None] == kinds).all(axis=2).sum(axis=0)
    check(attacked((np.rint(counts) == true).all()), OF_KINDS[terms])
