"""Totals of ``fccm`` from which one site can compute the tables of all others.

A site takes its own share off every total that it reads: what is left is R·W of the
others' columns R. W differs by cluster, start and iteration, and totals carry 40 bits: so
their span is that of R, and the columns of zeros and ones in it are found by projection.
With nearly crisp weights W is one item, and a total is that item's column. So a session
of few items is refused, unless its terms name it and each site accepts it: by the items
of each site, and where these are enough, by the bits that are read of each object.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pytest
from support.lattices import reduced
from support.tables import cut_columns
from support.verdicts import ATTACKED, RIGHT, Refused, Verdict, attacked, check

from clustering_protocols import simulation
from clustering_protocols.common.error_catalogue import Problem
from clustering_protocols.common.errors import CoterieError
from clustering_protocols.protocols.fccm import site_state
from clustering_protocols.protocols.fccm.params import CoClustering
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.terms.terms import Layout

SPANNED: dict[str, Verdict] = {"as they are": ATTACKED, "rows shuffled": RIGHT}
"""By totals: whether every column of others is found, every object right."""
CRISP: dict[tuple[str, float], Verdict] = {
    ("allow", 100.0): RIGHT,
    ("allow", 1.0): ATTACKED,
    ("refuse", 1.0): Refused(Problem.GUARD_REFUSED, "hide each other"),
}
"""By terms and ``lambda_w``: whether a single total is a column of another site."""
LAYOUT = Layout.lattice(1, 3)


class Totals(NamedTuple):
    """What one site reads of every object, and the tables from which it was computed."""

    sums: list[FloatArray]
    weights: list[FloatArray]
    own: FloatArray
    others: FloatArray


@contextmanager
def reading(slot: str) -> Iterator[tuple[list[FloatArray], list[FloatArray]]]:
    """Keep the totals that a site's own software reads, and the weights of its items."""
    sums: list[FloatArray] = []
    weights: list[FloatArray] = []
    honest = site_state._read

    def read(context: Any, asked: Any, known: Any) -> Any:
        totals = honest(context, asked, known)
        if context.slot.name == slot:
            sums.append(totals.sums.copy())
            weights.append(known.weights.copy())
        return totals

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site_state, "_read", read)
        yield sums, weights


def played(
    n: int, m: int, **params: Any
) -> tuple[FloatArray, simulation.SimulationResult]:
    rng = np.random.default_rng(0)
    p, groups = rng.uniform(0.03, 0.5, m), rng.integers(3, size=n)
    raised = 0.3 * ((np.arange(m) % 3)[None] == groups[:, None])
    X = (rng.random((n, m)) < np.clip(p + raised, 0, 0.9)).astype(float)
    terms = CoClustering(**{"n_clusters": 4, **params})
    return X, simulation.run(terms, LAYOUT, cut_columns(X, LAYOUT), seed=0)


def totals_of(n: int, m: int, **params: Any) -> Totals:
    with reading("r1c1") as (sums, weights):
        X, run = played(n, m, small_cohorts="allow", **params)
    own, *others = np.array_split(X[run.orders["r1c1"]], 3, axis=1)
    return Totals(sums, weights, own, np.hstack(others))


def binary_vectors(S: FloatArray, tries: int) -> set[bytes]:
    """Return vectors of zeros and ones in the span of S and 1, those with fewer ones."""
    rng = np.random.default_rng(0)
    A = np.column_stack([S, np.ones(len(S))])
    U, values, _ = np.linalg.svd(A / np.linalg.norm(A, axis=0), full_matrices=False)
    U = U[:, values > 1e-9 * values[0]]
    found = set()
    for _ in range(tries):
        V = U @ rng.normal(size=(U.shape[1], 400))
        cuts = rng.uniform(0.2, 0.98, V.shape[1])
        quantiles = [np.quantile(v, cut) for v, cut in zip(V.T, cuts, strict=True)]
        bits = np.array(quantiles) < V
        for _ in range(60):
            closer = U @ (U.T @ bits) > 0.5
            if (closer == bits).all():
                break
            bits = closer
        away = np.abs(U @ (U.T @ bits) - bits).max(axis=0)
        for column in bits.T[away < 1e-5]:
            rare = column if column.mean() <= 0.5 else ~column
            found.add(rare.tobytes())
    return found


@pytest.mark.threat(195)
@pytest.mark.parametrize("case", SPANNED)
@pytest.mark.quick(2)
def test_totals_span_the_columns_of_all_other_sites(case: str) -> None:
    totals = totals_of(150, 18, n_init=2)
    parts = zip(totals.sums, totals.weights, strict=True)
    S = np.column_stack([sums - totals.own @ weights for sums, weights in parts])
    S = S[:, np.linalg.norm(S, axis=0) > 0]
    if "shuffled" in case:
        rng = np.random.default_rng(1)
        S = np.column_stack([rng.permutation(column) for column in S.T[:12]])
    found = binary_vectors(S, tries=20)
    rare = [
        column if column.mean() <= 0.5 else 1 - column for column in totals.others.T
    ]
    hits = [column.astype(bool).tobytes() in found for column in rare]
    assert all(hits) or not any(hits)
    check(attacked(all(hits)), SPANNED[case])


@pytest.mark.threat(195)
def test_lattice_reduction_finds_columns_in_few_totals() -> None:
    """Integer combinations of objects that are 0 in all totals are 0 in all items."""
    totals = totals_of(150, 18, n_clusters=2, n_init=1, max_iter=1)
    parts = zip(totals.sums, totals.weights, strict=True)
    S = np.column_stack([sums - totals.own @ weights for sums, weights in parts])
    n, m = 40, totals.others.shape[1]
    assert S.shape[1] <= m / 2, "as many equations as the bound allows to real numbers"
    rows = S[:n] / np.abs(S).max()
    U = np.rint(reduced(np.hstack([2.0**34 * rows, np.eye(n)]), 60)[:, S.shape[1] :])
    short = U[np.argsort(np.linalg.norm(U, axis=1))[: n - m]]
    span = np.linalg.svd(short)[2][n - m :].T
    found = binary_vectors(span, tries=60)
    others = totals.others[:n]
    rare = [column if column.mean() <= 0.5 else 1 - column for column in others.T]
    assert all(column.astype(bool).tobytes() in found for column in rare)


@pytest.mark.threat(195)
@pytest.mark.parametrize(("terms", "lambda_w"), CRISP)
def test_a_total_of_crisp_weights_is_a_column(terms: str, lambda_w: float) -> None:
    if terms == "refuse":
        with pytest.raises(CoterieError) as refused:
            played(300, 2400, n_init=1, max_iter=2, lambda_w=lambda_w)
        check(refused.value, CRISP[terms, lambda_w])
        return
    totals = totals_of(300, 30, n_init=2, lambda_w=lambda_w)
    vectors = np.column_stack(totals.sums)
    away = [np.abs(totals.others - v[:, None]).max(axis=0).min() for v in vectors.T]
    check(attacked(min(away) < 1e-6), CRISP[terms, lambda_w])
