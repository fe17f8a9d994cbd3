"""`fccm` beside the tables of its paper: correlations of item memberships, Tables 1 to 4.

    python -m benchmarks.papers.fccm_tables [--starts N] [--simulated N] [--likely P]

Honda, Oda, Tanaka, Notsu, "A collaborative framework for privacy preserving fuzzy
co-clustering of vertically distributed cooccurrence matrices": four sites, 50 starts.

The reference is FCCM on the pooled matrix: of all starts the one with the largest
criterion (equation 1). A site's items have memberships w_c (c = 1..C) there and in the
run that is judged; the figure is the mean over clusters of their correlations, after
the best matching of clusters (one for all sites where they work together). A
membership that is the same for all items counts as a correlation of 0.

global     item memberships normalised over all sites: the default of `fccm`.
site       over the items of each site: the paper's proposal.
site-wise  FCCM at each site alone.

Table 1  100 × 90, four groups of objects and of items at every site.
Table 2  the same with 4, 3, 2 and 4 groups at the four sites, C = 3.
Table 3  terrorist attacks, C = 3. Fuzziness differs, as in the paper; `global` has
         that of the paper's pooled run.
         Again beside the pooled run whose clusters Table 4 prints: an optimum with a
         smaller criterion that few starts end in, so more starts are tried for it.
Table 4  the largest three classes of attacks against clusters.

The paper's made data are not published, nor is their noise: ours have ones with
probability P = 0.7 inside a group and 1 - P outside, and figures are means over five
such matrices. The bar depends on P: with 0.8 sites alone find the
groups about as well, with 0.6 few starts find them at all.

Starts run as plain arrays; the first of them (--simulated) run as sessions too, and
have to agree to 1e-6. Ends with 1 if they do not, or if `site` or `global` does not
beat site-wise in the mean at some site.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from benchmarks.datasets import MissingDataError, load
from benchmarks.papers.fccm_experiments import (
    MAIN_CLASSES,
    MAX_ITER,
    TABLE_4,
    TOL,
    Experiment,
    Four,
    Fuzziness,
    Matrix,
    Run,
    Runs,
    best_of,
    experiments,
    fccm,
    pooled_runs,
    run_all,
    start,
)
from clustering_protocols import simulation
from clustering_protocols.numerics.data_source import MatrixSource
from clustering_protocols.protocols.fccm import CoClustering
from clustering_protocols.terms.terms import Layout

AGREE = 1e-6
MANY_STARTS = 200
LAYOUT = Layout.lattice(1, 4)

# Correlations


def correlations(W: Matrix, reference: Matrix) -> Matrix:
    """Return the correlation of each cluster's memberships with each of the reference's."""
    A, B = W - W.mean(axis=0), reference - reference.mean(axis=0)
    lengths = np.linalg.norm(A, axis=0)[:, None] * np.linalg.norm(B, axis=0)
    found: Matrix = np.divide(
        A.T @ B, lengths, out=np.zeros_like(lengths), where=lengths > 1e-12
    )
    return found


def matched(tables: Sequence[Matrix]) -> list[float]:
    """Return each site's mean correlation after one matching of clusters for all."""
    rows, columns = linear_sum_assignment(-np.sum(tables, axis=0))
    return [float(table[rows, columns].mean()) for table in tables]


def judged(e: Experiment, W: Matrix, reference: Matrix) -> list[float]:
    """Return each site's figure where sites work together."""
    return matched([correlations(W[own], reference[own]) for own in e.columns])


def judged_alone(e: Experiment, runs: Sequence[Run], reference: Matrix) -> list[float]:
    """Return each site's figure where each works alone."""
    return [
        matched([correlations(run.W, reference[own])])[0]
        for run, own in zip(runs, e.columns, strict=True)
    ]


# The tables


def figures(e: Experiment, runs: Runs, reference: Run) -> dict[str, Matrix]:
    """Return the figures (starts, sites) of each way to work."""
    W = reference.W
    return {
        "global": np.array([judged(e, run.W, W) for run in runs.pooled]),
        "site": np.array([judged(e, run.W, W) for run in runs.site]),
        "site-wise": np.array([judged_alone(e, each, W) for each in runs.alone]),
    }


def table(e: Experiment, found: Sequence[dict[str, Matrix]]) -> bool:
    """Print best and mean over starts; return whether the bar holds at every site.

    Both are means over the matrices whose figures are given.
    """
    n_starts = len(found[0]["site"])
    print(
        f"\n{e.title}: correlation with the pooled run at sites 1 to 4, best and mean "
        f"over {n_starts} starts: ours | as the paper prints it"
    )
    printed = {"site": e.printed[0], "site-wise": e.printed[1]}
    means = {}
    for name in found[0]:
        means[name] = np.mean([each[name].mean(axis=0) for each in found], axis=0)
        best = np.mean([each[name].max(axis=0) for each in found], axis=0)
        theirs = printed.get(name, (None, None))
        _print_row(f"{name}, best", best, theirs[0])
        _print_row(f"{name}, mean", means[name], theirs[1])
    missed = [
        f"{name}, site {t + 1}"
        for name in ("global", "site")
        for t in np.flatnonzero(means[name] <= means["site-wise"])
    ]
    if missed:
        print(f"  <- site-wise is no worse in the mean: {'; '.join(missed)}")
    return not missed


def _print_row(name: str, ours: Sequence[float] | Matrix, paper: Four | None) -> None:
    figures = "  ".join(f"{each:6.3f}" for each in ours)
    beside = "  ".join(f"{each:.3f}" for each in paper) if paper else ""
    print(f"{name:16s} {figures} | {beside}", flush=True)


# Sessions


def simulated(e: Experiment, normalisation: Any, of: Fuzziness, seed: int) -> float:
    """Return how far a session is from the same run on plain arrays."""
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
    data = {
        slot: MatrixSource(e.X[:, own], ids=simulation.number_rows(len(e.X)))
        for slot, own in zip(LAYOUT.names, e.columns, strict=True)
    }
    session = simulation.run(params, LAYOUT, data, seed)
    order = session.orders[LAYOUT.names[0]]
    columns = e.columns if normalisation == "site" else [np.arange(e.X.shape[1])]
    plain = fccm(e.X[order], columns, of, start(e, seed))
    outcomes = [session.outcomes[slot] for slot in LAYOUT.names]
    W = np.hstack([found.item_memberships for found in outcomes])
    U = [np.abs(found.memberships[order] - plain.U).max() for found in outcomes]
    return float(max(*U, np.abs(W - plain.W.T).max()))


def sessions_agree(e: Experiment, n_starts: int) -> bool:
    """Print how far sessions are from runs on plain arrays; return whether it is little."""
    far = max(
        simulated(e, normalisation, of, seed)
        for seed in range(n_starts)
        for normalisation, of in (("global", e.pooled), ("site", e.together))
    )
    mark = "" if far <= AGREE else f"  <- further than {AGREE:g}"
    print(f"sessions of {n_starts} starts are within {far:.1e} of these runs{mark}")
    return far <= AGREE


# Table 4

Counts = NDArray[np.int64]


class Classes:
    """The classes of the attacks that the paper lists, and clusters against them."""

    def __init__(self) -> None:
        self.y = load("terrorist")[1]
        self.listed = np.argsort(-np.bincount(self.y))[[0, 2, 1]]

    def against(self, run: Run, printed: Counts) -> Counts:
        """Return how many of each class are in each cluster, matched to a table."""
        labels = run.U.argmax(axis=1)
        found = np.array(
            [np.bincount(labels[self.y == each], minlength=3) for each in self.listed]
        )
        away = np.abs(found[:, :, None] - printed[:, None, :]).sum(axis=0)
        return found[:, np.argsort(linear_sum_assignment(away)[1])]

    def nearest(self, runs: Sequence[Run], printed: Counts) -> Run:
        """Return the run whose table is nearest to a printed one."""
        return min(runs, key=lambda r: np.abs(self.against(r, printed) - printed).sum())


def cross_tabulations(e: Experiment, runs: Runs) -> None:
    """Print classes against clusters: the best start, the nearest one, the paper's."""
    classes = Classes()
    candidates = [(e.X, runs.pooled, e.pooled), (e.X, runs.site, e.together)]
    for t, own in enumerate(e.columns):
        candidates.append((e.X[:, own], [each[t] for each in runs.alone], e.alone))
    print("\nTable 4: largest criterion | nearest to the paper | paper")
    for (X, found, of), (name, rows) in zip(candidates, TABLE_4.items(), strict=True):
        printed = np.array(rows)
        best = classes.against(best_of(X, found, of), printed)
        near = classes.against(classes.nearest(found, printed), printed)
        print(name)
        for title, *lines in zip(MAIN_CLASSES, best, near, printed, strict=True):
            figures = " | ".join(" ".join(f"{n:4d}" for n in line) for line in lines)
            print(f"  {title:14s} {figures}")


def as_printed(runs: Runs) -> Run:
    """Return the pooled run nearest to Table 4: an optimum that few starts end in."""
    classes, printed = Classes(), np.array(TABLE_4["whole data"])
    return classes.nearest(runs.pooled, printed)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=50)
    parser.add_argument("--simulated", type=int, default=3)
    parser.add_argument("--likely", type=float, default=0.7)
    options = parser.parse_args()
    try:
        found = experiments(options.likely)
    except MissingDataError as missing:
        sys.exit(str(missing))
    held = True
    for experiment in found:
        judgements = []
        for e in experiment:
            runs = run_all(e, options.starts)
            judgements.append(figures(e, runs, best_of(e.X, runs.pooled, e.pooled)))
        held &= table(e, judgements)
        held &= sessions_agree(e, options.simulated)
    runs = replace(runs, pooled=pooled_runs(e, MANY_STARTS))
    print("\nThe same beside the pooled run that the paper prints (no bar)", end="")
    table(e, [figures(e, runs, as_printed(runs))])
    cross_tabulations(e, runs)
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
