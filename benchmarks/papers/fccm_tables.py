"""`fccm` beside the tables of its paper: correlations of item memberships, Tables 1 to 4.

    python -m benchmarks.papers.fccm_tables [--draws N] [--csv FILE]

Honda, Oda, Tanaka, Notsu, "A collaborative framework for privacy preserving fuzzy
co-clustering of vertically distributed cooccurrence matrices": four sites. The reference
is FCCM on the pooled matrix: of all starts the one with the largest criterion (equation
1). A site's items have memberships w_c (c = 1..C) in it and in the run beside it; the
figure is the mean over clusters of their correlations, after the best matching of clusters
(one for all sites where they work together). A membership that is the same for all items
counts as a correlation of 0.

global     item memberships normalised over all sites: the default of `fccm`.
site       over the items of each site: the paper's proposal.
site-wise  FCCM at each site alone.

Table 1  100 × 90, four groups of objects and of items at every site.
Table 2  the same with 4, 3, 2 and 4 groups at the four sites, C = 3.
Table 3  terrorist attacks, C = 3. Fuzziness differs, as in the paper; `global` has
         that of the paper's pooled run. Also compared with the pooled run whose
         clusters Table 4 prints ("beside Table 4's run").
Table 4  the largest three classes of attacks against clusters of the pooled run; the
         figure is the number of objects in other cells than the paper prints.

The paper's made data are not published, nor is their noise: ours have ones with
probability .7 inside a group and .3 outside. A draw is one of five such matrices. The
attacks are one matrix and have five times as many starts: there a draw of "mean" is one
start, and a draw of "best" is the best of about 50 starts. Starts run as plain arrays. The
first start runs as a session, too, whose clusters are paired with those of the plain run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from benchmarks.datasets import load
from benchmarks.papers.cells import Cause, Cell, at_hand, main, printed, split_columns
from benchmarks.papers.fccm_experiments import (
    MAX_ITER,
    TABLE_4,
    TOL,
    Experiment,
    Fuzziness,
    Matrix,
    Run,
    Runs,
    best_of,
    experiments,
    fccm,
    run_all,
    start,
)
from clustering_protocols import simulation
from clustering_protocols.protocols.fccm import CoClustering

N_STARTS, N_BLOCKS = 50, 5
cell = printed("fccm")
P_SAME = 0.7
UNPUBLISHED = (
    "The paper shows its synthetic data only as pictures; ours have ones with "
    "probability .7 inside a group and .3 outside."
)
POORER_OPTIMUM = (
    "The paper's pooled run did not find the best optimum; compared with the clusters "
    "in its Table 4, the cell is near."
)


def correlations(W: Matrix, reference: Matrix) -> Matrix:
    """Return the correlation of each cluster's memberships with each of the reference's."""
    A, B = W - W.mean(axis=0), reference - reference.mean(axis=0)
    lengths = np.linalg.norm(A, axis=0)[:, None] * np.linalg.norm(B, axis=0)
    found: Matrix = np.divide(
        A.T @ B, lengths, out=np.zeros_like(lengths), where=lengths > 1e-12
    )
    return found


def match_clusters(tables: Sequence[Matrix]) -> list[float]:
    """Return each site's mean correlation after one matching of clusters for all."""
    rows, columns = linear_sum_assignment(-np.sum(tables, axis=0))
    return [float(table[rows, columns].mean()) for table in tables]


def figures_together(e: Experiment, W: Matrix, reference: Matrix) -> list[float]:
    """Return each site's figure if sites work together."""
    return match_clusters([correlations(W[own], reference[own]) for own in e.columns])


def figures_alone(e: Experiment, runs: Sequence[Run], reference: Matrix) -> list[float]:
    """Return each site's figure if each works alone."""
    return [
        match_clusters([correlations(run.W, reference[own])])[0]
        for run, own in zip(runs, e.columns, strict=True)
    ]


def figures(e: Experiment, runs: Runs, reference: Run) -> dict[str, Matrix]:
    """Return the figures (starts, sites) of each way of working."""
    W = reference.W
    return {
        "global": np.array([figures_together(e, run.W, W) for run in runs.pooled]),
        "site": np.array([figures_together(e, run.W, W) for run in runs.site]),
        "site-wise": np.array([figures_alone(e, each, W) for each in runs.alone]),
    }


def session_error(e: Experiment, normalisation: Any, of: Fuzziness, seed: int) -> float:
    """Return the largest difference of a session from the same run on plain arrays."""
    params = CoClustering(
        n_clusters=e.n_clusters,
        lambda_u=of[0],
        lambda_w=of[1],
        normalisation=normalisation,
        n_init=1,
        max_iter=MAX_ITER,
        tol=TOL,
        small_cohorts="allow",
    )
    layout, data = split_columns(e.X, e.columns)
    session = simulation.run(params, layout, data, seed)
    order = session.orders[layout.names[0]]
    columns = e.columns if normalisation == "site" else [np.arange(e.X.shape[1])]
    plain = fccm(e.X[order], columns, of, start(e, seed))
    outcomes = [session.outcomes[slot] for slot in layout.names]
    W = np.hstack([found.item_memberships for found in outcomes])
    # sessions number clusters by a rule of their own
    own, plains = linear_sum_assignment(-(W @ plain.W))
    U = [
        np.abs(found.memberships[order][:, own] - plain.U[:, plains]).max()
        for found in outcomes
    ]
    return float(max(*U, np.abs(W[own] - plain.W.T[plains]).max()))


# Table 4


def nearest_to_table_4(runs: Sequence[Run]) -> Run:
    """Return the pooled run that is nearest to Table 4's whole data."""
    return min(runs, key=lambda run: away_from_table_4(run)[0])


def away_from_table_4(
    run: Run, title: str = "whole data"
) -> tuple[int, NDArray[np.int64]]:
    """Return how many objects are in other cells than printed, and the cells."""
    y = load("terrorist")[1]
    listed = np.argsort(-np.bincount(y))[[0, 2, 1]]
    labels = run.U.argmax(axis=1)
    table = np.array([np.bincount(labels[y == each], minlength=3) for each in listed])
    printed = np.array(TABLE_4[title])
    apart = np.abs(table[:, :, None] - printed[:, None, :]).sum(axis=0)
    found = table[:, np.argsort(linear_sum_assignment(apart)[1])]
    return int(np.abs(found - printed).sum()) // 2, found


# Cells


def cells_of_table(
    e: Experiment, found: Sequence[dict[str, Matrix]], beside: str = ""
) -> Iterator[Cell]:
    """Yield a table's cells: a draw is a matrix, or a start if there is one matrix."""
    table, _, name = e.title.partition(", ")
    for way in found[0]:
        for site in range(4):
            for kind in ("best", "mean"):
                starts = [each[way][:, site] for each in found]
                if len(found) == 1 and kind == "mean":
                    draws = starts[0]
                elif len(found) == 1:
                    blocks = np.array_split(
                        starts[0], max(1, len(starts[0]) // N_STARTS)
                    )
                    draws = np.array([block.max() for block in blocks])
                else:
                    summary = np.max if kind == "best" else np.mean
                    draws = np.array([summary(values) for values in starts])
                yield cell(
                    table,
                    name,
                    f"{way}, site {site + 1}, {kind}{beside}",
                    draws,
                    cause=_cause(table, f"{way}, site {site + 1}, {kind}"),
                    is_option=bool(beside),
                )


def _cause(table: str, quantity: str) -> Cause:
    if table != "Table 3":
        return Cause(UNPUBLISHED)
    return Cause(POORER_OPTIMUM, quantity + BESIDE)


BESIDE = ", beside Table 4's run"


def measure(n_starts: int) -> Iterator[Cell]:
    """Yield all cells."""
    has_attacks = bool(list(at_hand(["terrorist"])))
    for experiment in experiments(P_SAME, attacks=has_attacks):
        judgements = []
        for e in experiment:
            several = n_starts if len(experiment) > 1 else N_BLOCKS * n_starts
            runs = run_all(e, several)
            judgements.append(figures(e, runs, best_of(e.X, runs.pooled, e.pooled)))
        yield from cells_of_table(e, judgements)
        table, _, name = e.title.partition(", ")
        for normalisation, of in (("global", e.pooled), ("site", e.together)):
            apart = session_error(e, normalisation, of, 0)
            quantity = f"{normalisation}, session less plain run"
            yield cell(table, name, quantity, [apart])
    if has_attacks:
        run = nearest_to_table_4(runs.pooled)
        yield from cells_of_table(e, [figures(e, runs, run)], BESIDE)
        yield from cross_tabulation(e, run, runs)


def cross_tabulation(e: Experiment, run: Run, runs: Runs) -> Iterator[Cell]:
    """Yield how many objects lie in other cells than Table 4 prints."""
    found = {
        "whole data": run,
        "whole data, largest criterion": best_of(e.X, runs.pooled, e.pooled),
        "site": min(runs.site, key=lambda each: away_from_table_4(each, "site")[0]),
    }
    for title, each in found.items():
        apart, _ = away_from_table_4(each, title.partition(",")[0])
        quantity = f"{title}, objects in other cells"
        yield cell("Table 4", "terrorist attacks", quantity, [apart])


if __name__ == "__main__":
    sys.exit(main(measure, __doc__, draws=N_STARTS))
