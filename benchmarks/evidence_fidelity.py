"""Fidelity, rounds and bytes of every way (method) of a protocol, on every set at hand.

A sample of each set is drawn; rows and columns are shuffled by the seed and dealt out to
four parties: four row groups, four column groups, or two of each. There are as many
clusters as classes. Fidelity is the adjusted Rand index between the labels and those of
the same clustering on the pooled rows from the same start. The objective ratio divides
what a way minimises by the same of the pooled method with ten starts, a second one by
that of the pooled method under the session's rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.datasets import SOURCES, sample
from clustering_protocols import catalogue, simulation
from clustering_protocols.common.errors import CoterieError
from clustering_protocols.common.suitability import Method
from clustering_protocols.numerics.objectives import Objectives
from clustering_protocols.terms import session_risks
from clustering_protocols.terms.terms import Layout

PARTIES = 4
LAYOUTS = {
    "horizontal": Layout.lattice(PARTIES, 1),
    "vertical": Layout.lattice(1, PARTIES),
    "mixed": Layout.lattice(2, 2),
}
SETS = ("iris", "wine", "breast_cancer", "digits", *SOURCES)
# Sets of co-occurrences or intensities, and those that ways for other data do not take.
COUNTS = ("terrorist", "digits", "mnist", "fmnist", "coil20")
ONLY_COUNTS = ("terrorist",)
# With this many features, the usual exponent 2 makes all centroids coincide.
WIDE, EXPONENT = 50, 1.1
EXPONENTS = {"llf": "fuzzifier", "omnifc": "fuzziness"}

Row = dict[str, Any]
COLUMNS = (
    *("partitioning", "protocol", "way", "set", "rows", "features", "clusters"),
    *("mean", "least", "first", "ratio", "worst_ratio", "worst_ratio_same_rules"),
    *("rounds", "sent_bytes", "refused"),
)
Case = tuple[str, str, str, str]
"""Protocol, way, partitioning and set."""


def line_of(row: Row) -> dict[str, str]:
    """Return a row as a line of fidelity.csv."""
    return {column: str(row.get(column, "")) for column in COLUMNS}


def case_of(line: dict[str, str]) -> Case:
    """Return the case that a line is about."""
    return line["protocol"], line["way"], line["partitioning"], line["set"]


# Distances to landmarks change neither what is learnt nor what is advised: they are
# rows of the tables, but no ways of the catalogue.
LANDMARKS = ("kmeans", "fuzzy_cmeans", "spectral", "dbscan", "hdbscan")
DENSITY = {"algorithm": "hdbscan"}


def landmark_ways() -> list[Method]:
    """Return the ways of `omnifc` that run on coordinates, by distances to landmarks."""
    known = catalogue.protocol("omnifc").methods
    dbscan = next(way for way in known if way.name == "dbscan")
    hdbscan = replace(dbscan, name="hdbscan", params=DENSITY)
    return [
        replace(
            way,
            name=f"{way.name}, landmarks",
            params={**way.params, "distances": "landmarks"},
        )
        for way in (*known, hdbscan)
        if way.name in LANDMARKS
    ]


def further_cases(sets: Sequence[str]) -> list[Case]:
    """Return the cases of ways that state no agreement: landmarks and mixtures."""
    ways = [
        ("omnifc", way.name, p) for way in landmark_ways() for p in way.partitionings
    ]
    ways.append(("mixture", "gaussian_mixture", "horizontal"))
    return [(*way, name) for way in ways for name in sets if name not in ONLY_COUNTS]


def cases(sets: Sequence[str]) -> list[Case]:
    """Return the cases of ways that state an agreement, on sets that suit the way."""
    return [
        (name, way.name, partitioning, each)
        for name, known in catalogue.catalogue().items()
        for way in known.methods
        for partitioning in way.agreement
        for each in sets
        if (each in COUNTS if way.data == "counts" else each not in ONLY_COUNTS)
    ]


def way_of(protocol: str, name: str, partitioning: str) -> Method:
    """Return the way of a protocol by its name and partitioning."""
    known = (*catalogue.protocol(protocol).methods, *landmark_ways())
    return next(w for w in known if w.name == name and partitioning in w.partitionings)


def parameters(protocol: str, way: Method, X: Any, classes: Any) -> dict[str, Any]:
    """Return the parameters that a way is measured with."""
    given = way.recommended_params(len(np.unique(classes)))
    if "fuzzy" in way.name and X.shape[1] >= WIDE:
        given[EXPONENTS[protocol]] = EXPONENT
    if protocol == "llf" and "fuzzy" in way.name and "horizontal" in way.partitionings:
        given["small_cohorts"] = "allow"  # sets are small, or a sample
    return given


def measure(case: Case, seeds: int, rows: int) -> Row:
    """Return the figures of one case, or why it is refused."""
    protocol, name, partitioning, set_name = case
    X, classes = sample(set_name, rows)
    way = way_of(protocol, name, partitioning)
    if way.data == "counts":
        X = X / X.max()
    given = parameters(protocol, way, X, classes)
    row: Row = {
        "protocol": protocol,
        "way": name,
        "partitioning": partitioning,
        "set": set_name,
        "rows": len(X),
        "features": X.shape[1],
    }
    groups = LAYOUTS[partitioning].n_column_groups
    if X.shape[1] < groups:
        return row | {"refused": f"{X.shape[1]} features are too few for {groups}."}
    params = catalogue.parse_params(protocol, given)
    try:
        with threadpool_limits(1):
            pairs = [evaluate(params, X, partitioning, seed) for seed in range(seeds)]
    except CoterieError as refused:
        return row | {"refused": refused.detail}
    runs = [run for run, _ in pairs]
    found = [run.fidelity for run in runs]
    costs = runs[0].simulated.costs
    return row | {
        "mean": round(float(np.mean(found)), 4),
        "least": round(min(found), 4),
        "first": round(found[0], 4),
        **summarise([objectives for _, objectives in pairs]),
        "clusters": len(np.unique(runs[0].labels[runs[0].labels >= 0])),
        "rounds": runs[0].simulated.rounds,
        "sent_bytes": max(
            cost.sent_bytes
            for role, cost in costs.items()
            if role != simulation.ANALYST
        ),
    }


def evaluate(
    params: Any, X: Any, partitioning: str, seed: int
) -> tuple[simulation.SessionEvaluation, Objectives | None]:
    """Return one run, and its objective compared with pooled ones."""
    layout = LAYOUTS[partitioning]
    parts = simulation.split(X, layout, seed)
    # all parties of a set share its units
    choices = {slot: {session_risks.OTHER_UNITS: True} for slot in layout.names}
    run = simulation.evaluate(params, X, parts, seed, choices=choices)
    return run, simulation.compare_objectives(run.simulated, X, parts)


def summarise(found: Sequence[Objectives | None]) -> dict[str, float]:
    """Return median and worst ratio, and the worst under the same rules, if any."""
    known = [each for each in found if each is not None and each.ratio is not None]
    if not known:
        return {}
    ratios = [each.ratio or 0.0 for each in known]
    same = [each.ratio_same_rules or 0.0 for each in known]
    return {
        "ratio": round(float(np.median(ratios)), 4),
        "worst_ratio": round(max(ratios), 4),
        "worst_ratio_same_rules": round(max(same), 4),
    }


def measure_all(sets: Sequence[str], seeds: int, rows: int) -> Iterator[Row]:
    """Yield the figures of all cases, in order, measured by two processes."""
    known = [*cases(sets), *further_cases(sets)]
    with ProcessPoolExecutor(2) as pool:
        waiting = [pool.submit(measure, case, seeds, rows) for case in known]
        for future in waiting:
            yield future.result()
