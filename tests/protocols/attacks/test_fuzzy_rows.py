"""Fuzzy sessions over rows: each is within the bound on equations, together they are not.

A session tells 2(T + 2)·k·(1 + 1/F) equations at most for each row of others. A home
counts them over its sessions: otherwise one curious party would have more equations than
unknowns after a few of them, and would solve for all rows of others.

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
from scipy.optimize import nnls
from support.verdicts import ATTACKED, Refused, Verdict, attacked, check

from clustering_protocols import simulation
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import CoterieError
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.llf import LosslessFederated, rows_round
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.terms.terms import Layout
from tests.protocols.attacks.honest_sessions import (
    check_refused,
    completed,
    house_in,
    play,
)

DEGREES = Refused(Problem.GUARD_REFUSED, "sums of memberships over these rows")
ATTACKER = "r2c1"
Moves = list[tuple[FloatArray, FloatArray]]


def weighted(rows: FloatArray, before: FloatArray, after: FloatArray) -> FloatArray:
    """Return what each row (n, F) adds to Σ μ² (x - v') of each round: (n, T, k, F)."""
    away = np.square(rows[:, None, None, :] - before).sum(axis=3) + 1e-300
    degrees = (1 / away) / (1 / away).sum(axis=2, keepdims=True)
    added: FloatArray = np.square(degrees)[..., None] * (rows[:, None, None, :] - after)
    return added


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


def test_sessions_that_together_exceed_the_bound_are_refused(tmp_path: Path) -> None:
    rng, ids = np.random.default_rng(0), [f"P{row}" for row in range(15)]
    tables = [
        pd.DataFrame({"id": ids, **{name: rng.normal(size=15) for name in "ab"}})
        for _ in range(3)
    ]
    params = LosslessFederated(
        n_clusters=2,
        algorithm="fuzzy_cmeans",
        fuzzifier=2.0,
        max_iter=3,
        tol=0.0,
        publish="sizes",
    )
    layout = Layout.lattice(3)
    with house_in(tmp_path) as house:
        first, second = (
            play(house, name, params, layout, tables, ids="id") for name in ("s", "t")
        )
    completed(first)
    check_refused(second, DEGREES)


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
    mine = weighted(own, before, after).sum(axis=0).ravel()
    each = weighted(scaled, before, after).reshape(len(kinds), -1).T
    counts = nnls(np.vstack([each, np.ones(len(kinds))]), np.append(-mine, 2 * n))[0]
    others = np.vstack([X[:n], X[2 * n :]])
    true = (others[:, None] == kinds).all(axis=2).sum(axis=0)
    check(attacked((np.rint(counts) == true).all()), OF_KINDS[terms])
