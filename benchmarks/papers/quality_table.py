"""The quality of results beside pooled analyses: objectives, choice of k, empty cells.

    python -m benchmarks.papers.quality_table [--part objectives k ragged]
        [--seeds N]
        [--rows N] [--protocols NAME …] [--sets NAME …]

objectives  fidelity and objective ratio of sessions of each protocol, median and worst
            over sets and seeds; the second ratio is over pooled runs by the same rules.
            A set above the bar is printed with what ten other pooled starts reach: for
            many clusters ten starts are few, in a session as on pooled rows. `llf` over
            rows starts from clusters of five rows of one party: if parties have fewer
            than ten rows per cluster, that is printed too
k           which number of clusters, from 2 to 10 (or 5 above the right one), sessions
            take, and which one pooled k-means takes by the silhouette and by the index
            of Caliński and Harabasz, the only one that `llf` over columns can compute;
            how many are right, so far after each set. What compares runs but decides
            nothing (gap, stability, prediction strength) is not computed
ragged      `dc` over a lattice with an empty cell beside pooled k-means of the table in
            which that cell is filled with column means

Sets are those of `benchmarks.papers.quality_sets`. Ends with 1 if a
part misses one of its bars.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple
from unittest import mock

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import calinski_harabasz_score, silhouette_score
from threadpoolctl import threadpool_limits

from benchmarks.papers.quality_sets import NAMES, KnownSet, Sets
from clustering_protocols import catalogue, simulation
from clustering_protocols.common.errors import CoterieError
from clustering_protocols.quality import pooled_objectives, runs as quality_runs
from clustering_protocols.records.arrays import FloatArray
from clustering_protocols.terms import session_risks
from clustering_protocols.terms.sections import Evaluation
from clustering_protocols.terms.terms import Layout, Slot

MEDIAN, WORST = 1.005, 1.02

_Pick = Callable[[KnownSet, Sequence[int], int], int | None]


def lattice(split: str, n_columns: int) -> Layout:
    """Return a split's layout: three parties (two for two columns), or two × two."""
    if split == "rows":
        return Layout.lattice(3)
    if split == "columns":
        return Layout.lattice(1, min(3, n_columns))
    return Layout.lattice(2, 2)


LIMITS: Final[dict[str, dict[str, Any]]] = {
    "dc": {"rebuild_limit": 1.0},
    "llf": {session_risks.SUMS_LIMIT: 1.0},
}
"""Limits that let parties accept small sets; they change no result."""


class Way(NamedTuple):
    """A protocol over a split, and whether the bars apply to it."""

    protocol: str
    split: str
    params: dict[str, Any]
    has_bars: bool


WAYS: Final = (
    Way("llf", "rows", {}, has_bars=True),
    Way("llf", "columns", {}, has_bars=True),
    Way("omnifc", "rows", {}, has_bars=True),
    Way("dc", "rows", {"dimensions": "all"}, has_bars=True),
    Way("dc", "columns", {"dimensions": "all"}, has_bars=True),
    Way("dc", "both", {"dimensions": "all"}, has_bars=True),
    Way("dc", "rows", {}, has_bars=False),
    Way("dc", "columns", {}, has_bars=False),
    Way("dc", "both", {}, has_bars=False),
    Way("pqmds", "columns", {}, has_bars=False),
)


def play(
    way: Way, known: KnownSet, seed: int, k: Sequence[int]
) -> tuple[simulation.SimulationResult, simulation.Split]:
    """Run a session over a set; return it and the split, or raise CoterieError."""
    layout = lattice(way.split, known.X.shape[1])
    parts = simulation.split(known.X, layout, seed)
    given = {"n_clusters": max(k), **way.params}
    if (way.protocol, len(layout.slots)) == ("llf", 2):
        given["allow_two_parties"] = True
    params = catalogue.parse_params(way.protocol, given)
    own = {session_risks.OTHER_UNITS: True, **LIMITS.get(way.protocol, {})}
    choices = dict.fromkeys(layout.names, own)
    more: dict[str, Any] = (
        {} if len(k) == 1 else {"evaluation": Evaluation(n_clusters=tuple(k))}
    )
    run = simulation.run(params, layout, parts.data, seed, choices=choices, **more)
    return run, parts


# Objectives


def objectives(ways: Sequence[Way], sets: Sets, seeds: int) -> bool:
    """Print ratios of all ways; return whether the bars are met."""
    met = True
    print(f"{'':34}{'n':>4}{'fidelity':>20}{'objective ratio':>20}{'same rules':>20}")
    for way in ways:
        found, refused = [], 0
        for known in sets:
            for seed in range(seeds):
                try:
                    run, parts = play(way, known, seed, [max(known.k, 2)])
                except CoterieError:
                    refused += 1
                    continue
                fidelity = simulation.compare_with_pooled(run, known.X, parts).fidelity
                compared = simulation.compare_objectives(run, known.X, parts)
                if compared is not None:
                    ratios = (compared.ratio, compared.ratio_same_rules)
                    found.append((known, fidelity, *ratios))
        if not found:
            continue
        columns = [
            np.array(each, dtype=float) for each in list(zip(*found, strict=True))[1:]
        ]
        fidelities, ratio, same = columns
        cells = [
            f"{np.median(fidelities):.3f} ({fidelities.min():.3f})",
            f"{np.median(ratio):.4f} ({ratio.max():.3f})",
            f"{np.median(same):.4f} ({same.max():.3f})",
        ]
        named = f"{way.protocol}, {way.split} {' '.join(way.params.values())}"
        print(f"{named:34}{len(found):4}" + "".join(f"{c:>20}" for c in cells), end="")
        print(f"   refused {refused}" if refused else "", flush=True)
        above = [each for each in found if way.has_bars and (each[3] or 0.0) > WORST]
        for known, _, own, rules in above:
            print(
                f"    {known.name}: {own:.3f}, under the same rules {rules:.3f}; ten other "
                f"pooled starts reach {_other_starts(known)}{_few_rows(way, known)}"
            )
        if way.has_bars:
            met &= bool(np.median(ratio) <= MEDIAN) and not above
    return met


def _other_starts(known: KnownSet) -> str:
    """Return the range of ratios that pooled k-means of ten starts has in 20 draws."""
    k = max(known.k, 2)
    reference = pooled_objectives.pooled_kmeans(known.X, k).inertia
    drawn = [KMeans(k, n_init=10, random_state=seed) for seed in range(20)]
    ratios = [each.fit(known.X).inertia_ / reference for each in drawn]
    return f"{min(ratios):.3f} to {max(ratios):.3f}"


def _few_rows(way: Way, known: KnownSet) -> str:
    """Return a note if a party has too few rows for a start from its clusters."""
    if (way.protocol, way.split) != ("llf", "rows"):
        return ""
    each = len(known.X) // len(lattice(way.split, 2).slots)
    return f" (a party has {each} rows)" if each < 10 * known.k else ""


# Choice of k


@mock.patch.multiple(
    quality_runs,
    gaps=lambda *_, **__: [],
    stability=lambda *_, **__: None,
    prediction_strength=lambda *_, **__: None,
)
def print_choices(ways: Sequence[Way], sets: Sets, seeds: int) -> bool:
    """Print each way's k; return whether each is right as often as pooled, less 1 set."""
    indices = {"silhouette": silhouette_score, "Caliński": calinski_harabasz_score}
    ways = [way for way in ways if way.has_bars]
    names = [*indices, *(f"{way.protocol}, {way.split}" for way in ways)]
    picks = [*map(_pooled_pick, indices.values()), *map(_session_pick, ways)]
    right = np.zeros(len(names), dtype=int)
    n_sets = 0
    print(f"{'set, clusters':22}" + "".join(f"{each:>16}" for each in names))
    for known in sets:
        numbers = list(range(2, max(10, known.k + 5) + 1))
        print(f"{known.name + ' ' + str(known.k):22}", end="", flush=True)
        for place, pick in enumerate(picks):
            found = [pick(known, numbers, seed) for seed in range(seeds)]
            told = ",".join(map(str, dict.fromkeys(found)))
            print(f"{told:>16}", end="", flush=True)
            right[place] += known.k > 1 and found.count(known.k)
        n_sets += known.k > 1
        totals = "".join(f"{each / seeds:>16.1f}" for each in right)
        print(f"\n{f'  right of {n_sets}':22}{totals}", flush=True)
    return bool((right[len(indices) :] >= right[0] - seeds).all())


def _pooled_pick(index: Callable[..., float]) -> _Pick:
    """Return a function that picks the k where pooled k-means has the largest index."""

    def pick(known: KnownSet, numbers: Sequence[int], seed: int) -> int:
        fitted = (KMeans(k, n_init=10, random_state=seed) for k in numbers)
        found = [index(known.X, each.fit_predict(known.X)) for each in fitted]
        return numbers[int(np.argmax(found))]

    return pick


def _session_pick(way: Way) -> _Pick:
    def pick(known: KnownSet, numbers: Sequence[int], seed: int) -> int | None:
        try:
            run, _ = play(way, known, seed, numbers)
        except CoterieError:
            return None
        return numbers[run.chosen]

    return pick


# Empty cells


def ragged(_: Sequence[Way], sets: Sets, seeds: int) -> bool:
    """Print inertia of `dc` with an empty cell beside that of tables filled with means."""
    cells = [(0, 0), (0, 1), (1, 0)]
    layout = Layout(
        slots=tuple(Slot(name=f"r{r + 1}c{c + 1}", row=r, column=c) for r, c in cells)
    )
    params: dict[str, Any] = {"dimensions": "all"}
    print(f"{'':22}{'dc':>16}{'filled':>16}{'fidelity':>16}")
    for known in sets:
        if known.X.shape[1] < 3:
            continue
        k, found = max(known.k, 2), []
        best = KMeans(k, n_init=10, random_state=0).fit(known.X).inertia_
        for seed in range(seeds):
            parts = simulation.split(known.X, layout, seed)
            given = catalogue.parse_params("dc", {"n_clusters": k, **params})
            choices = {s: {"rebuild_limit": 1.0, session_risks.OTHER_UNITS: True}
                       for s in layout.names}  # fmt: skip
            try:
                run = simulation.run(given, layout, parts.data, seed, choices=choices)
            except CoterieError:
                continue
            measured = simulation.compare_with_pooled(run, known.X, parts)
            filled = _fill_cell(known.X, parts)
            pooled = KMeans(k, n_init=10, random_state=seed).fit_predict(filled)
            inertias = (measured.labels, pooled)
            ratios = [pooled_objectives.inertia(known.X, x) / best for x in inertias]
            found.append((*ratios, measured.fidelity))
        if found:
            told = "".join(f"{each:16.3f}" for each in np.median(found, axis=0))
            print(f"{known.name:22}{told}", flush=True)
    return True


def _fill_cell(X: FloatArray, parts: simulation.Split) -> FloatArray:
    """Return the table with its last cell filled with known means of its columns."""
    filled = X.copy()
    place = np.ix_(parts.rows[-1], parts.columns[-1])
    filled[place] = X[np.ix_(parts.rows[0], parts.columns[-1])].mean(axis=0)
    return filled


PARTS: Final = {"objectives": objectives, "k": print_choices, "ragged": ragged}


def main() -> int:
    """Run the parts; return 1 if one of them misses a bar."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=800)
    parser.add_argument("--protocols", nargs="+", default=None)
    parser.add_argument("--sets", nargs="+", default=NAMES, choices=NAMES)
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # of scikit-learn, about rows that coincide
    ways = [w for w in WAYS if given.protocols is None or w.protocol in given.protocols]
    how = (Sets(given.rows, given.sets), given.seeds)
    met = True
    with threadpool_limits(1):  # these tables are small: threads would wait
        for part, play_part in PARTS.items():
            if part in given.part:
                met &= play_part(ways, *how)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
